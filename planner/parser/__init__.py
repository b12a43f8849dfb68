"""A trained plan parser, which plans for any tools: it reads the toolbox and the message."""
