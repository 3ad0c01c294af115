-- A copy into this store that is not finished: while there are rows, it is not opened. `part` is a table and
-- how far it is copied, or '' and what is copied; `state` is JSON.
CREATE TABLE copy_progress (
    part  TEXT NOT NULL PRIMARY KEY,
    state TEXT NOT NULL
) STRICT, WITHOUT ROWID;
