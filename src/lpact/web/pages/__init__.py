"""One file a page: reads the address, asks the tables, fills a template."""
