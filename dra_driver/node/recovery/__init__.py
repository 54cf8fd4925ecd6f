"""After a start, and now and then: bring journal, CDI files and cards into agreement."""
