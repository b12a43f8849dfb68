"""What Casewright is measured by; a bench takes what its command's options say."""
