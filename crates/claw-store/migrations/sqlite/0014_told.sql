-- Nothing to do here: whoever follows a conversation looks whether the file changed.
SELECT 1;
