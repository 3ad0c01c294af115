-- The title that a session's owner gave it.
ALTER TABLE conversations ADD COLUMN title TEXT;
