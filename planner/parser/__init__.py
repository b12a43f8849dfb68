"""A trained plan parser, which reads the toolbox with the message and so plans for any tools."""
