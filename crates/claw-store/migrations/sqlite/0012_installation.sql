-- Whose store it is: one row, made when the store is first opened.
CREATE TABLE installation (
    singleton INTEGER NOT NULL PRIMARY KEY CHECK (singleton = 1),
    id        BLOB    NOT NULL
) STRICT;
