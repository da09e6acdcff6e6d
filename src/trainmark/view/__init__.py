"""What a page is made of, and what turns it into text for a terminal, Markdown or HTML in any language."""
