"""Studies of the papers behind Casewright: their tables, measured with small models or encoders."""
