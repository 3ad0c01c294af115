-- Files and directories of workspaces that are on no disk. `place` is the digest of the path, which can be longer
-- than an index takes. A directory has neither `version`, the digest of a file's bytes, nor `bytes`.
CREATE TABLE workspace_files (
    tenant  TEXT   NOT NULL,
    place   TEXT   COLLATE "C" NOT NULL,
    path    TEXT   COLLATE "C" NOT NULL,
    version TEXT,
    size    BIGINT NOT NULL CHECK (size >= 0),
    at      BIGINT NOT NULL,
    bytes   BYTEA  CHECK ((bytes IS NULL) = (version IS NULL)),
    PRIMARY KEY (tenant, place)
);

-- What is below a directory, by how the path begins.
CREATE INDEX workspace_files_below ON workspace_files (tenant, substr(path, 1, 200));
