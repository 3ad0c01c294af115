-- What stands for the beginning of a conversation: everything up to message `upto`. `text` is JSON.
CREATE TABLE summaries (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    upto    INTEGER NOT NULL,
    text    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, session, upto)
) STRICT, WITHOUT ROWID;
