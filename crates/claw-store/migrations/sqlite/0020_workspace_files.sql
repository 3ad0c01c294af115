-- Files and directories of workspaces that are on no disk. `place` is the digest of the path, which can be longer
-- than an index takes. A directory has neither `version`, the digest of a file's bytes, nor `bytes`. What is looked
-- at often comes before the bytes, so that they need not be read for it.
CREATE TABLE workspace_files (
    tenant  TEXT    NOT NULL,
    place   TEXT    NOT NULL,
    path    TEXT    NOT NULL,
    version TEXT,
    size    INTEGER NOT NULL CHECK (size >= 0),
    at      INTEGER NOT NULL,
    bytes   BLOB    CHECK ((bytes IS NULL) = (version IS NULL)),
    PRIMARY KEY (tenant, place)
) STRICT;

-- What is below a directory, by how the path begins.
CREATE INDEX workspace_files_below ON workspace_files (tenant, substr(path, 1, 200));
