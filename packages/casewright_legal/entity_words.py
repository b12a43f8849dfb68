"""Lists of words that decide whether a capitalised word is a name."""

from __future__ import annotations


def words(line: str) -> frozenset[str]:
    """Return the words of a line as a set."""
    return frozenset(line.split())


#: Uncapitalised words that a name may contain.
CONNECTORS = words("of for the de van von der den du la le di da del el al bin ibn &")
#: Uncapitalised words that a party's name may contain.
PARTY_JOINERS = CONNECTORS | {"and"}
#: Words and marks that an Act's name may contain. Those added here separate other names.
ACT_JOINERS = CONNECTORS | words("and on in to with , ' ’")
#: Words that may begin a sentence, and never begin a name.
SENTENCE_OPENERS = words(
    "a about above according accordingly after against all also although among an and another any "
    "applying are as at back because before being below between both but by can considering could "
    "despite did do does during each either even every finally first following for from further "
    "given had has have having he her here his how however i if in including instead into is it "
    "its itself last later like many may might more moreover most much must my neither never "
    "nevertheless next no none nor not nothing now of on once one only or other our out over own "
    "per prior pursuant quite rather second secondly section see seven several shall she should "
    "since so some soon still subject such than that the their them then there thereafter "
    "therefore these they third this those though three through throughout thus to together two "
    "under unless until up upon was we were what whatever when whenever where whereas whether "
    "which while who whom whose why will with within without would yes yet you your"
)
#: Words before a person's name that are not part of the name.
TITLES = words("mr mrs ms miss dr prof mx messrs")
#: Words that are no names by themselves.
GENERIC = words(
    "accused act acts agreement applicant applicants appeal appellant appellants application "
    "association authority award board chief claimant code commission commissioner committee "
    "company contract council counsel court courts crown defendant defendants department director "
    "fund government held honour honours judge judgment judgement justice landlord lease "
    "legislature lessee lessor licensee magistrate member minister ministry order orders "
    "parliament part plaintiff plaintiffs policy president principal purchaser reasons registrar "
    "registry regulation regulations respondent respondents rule rules schedule secretary seller "
    "society state statute subsection tenant tribunal vendor worker"
)
#: Words after which "for" may continue a name: Director for Public Housing.
WORDS_BEFORE_FOR = words(
    "agency association award board bureau centre center commissioner committee council court "
    "department director foundation fund institute ministry minister office prize secretary "
    "society"
)
#: Last words of names that contain an "and": Securities and Investments Commission.
LAST_WORDS_AFTER_AND = words(
    "affairs agency association authority board bureau bureaux centre center citizenship college "
    "commerce commission committee council department guardian institute ministry office party "
    "prosecutions society sons trustee tribunal university"
)
#: Last words of companies' names.
COMPANY_ENDS = words("ltd limited inc incorporated llc plc corporation corp")
#: Abbreviations whose full stop does not end a sentence.
ABBREVIATIONS = TITLES | words("v vs no st co pty jr sr hon cf eg ie para s ss r cl")
#: The names of months and days with capitals, separated by spaces.
MONTHS = "January February March April May June July August September October November December"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
#: The months and days in lower case.
CALENDAR = frozenset(f"{MONTHS} {DAYS}".casefold().split())
