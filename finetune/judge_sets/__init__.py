"""Sets of cases with labelled questions, on which the offline judge is trained and tested."""
