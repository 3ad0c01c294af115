-- Published skills. `newest` is the number of the newest version; 0 before the first is stored.
CREATE TABLE skills (
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    owner      TEXT,
    visibility TEXT    NOT NULL CHECK (visibility IN ('private', 'tenant')),
    pinned     INTEGER,
    newest     INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Versions of skills; `record` is all that is known of one, but for its files.
CREATE TABLE skill_versions (
    tenant  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL,
    record  TEXT    NOT NULL,
    PRIMARY KEY (tenant, name, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE skill_files (
    tenant     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    path       TEXT    NOT NULL,
    executable INTEGER NOT NULL,
    bytes      BLOB    NOT NULL,
    PRIMARY KEY (tenant, name, version, path)
) STRICT;

CREATE TABLE skill_grants (
    tenant  TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('agent', 'user')),
    grantee TEXT    NOT NULL,
    version INTEGER,
    PRIMARY KEY (tenant, name, kind, grantee)
) STRICT, WITHOUT ROWID;

-- Workspace skills that a person has accepted, by the digest of the whole directory.
CREATE TABLE skill_acceptances (
    tenant TEXT    NOT NULL,
    digest BLOB    NOT NULL CHECK (length(digest) = 32),
    name   TEXT    NOT NULL,
    author TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, digest)
) STRICT;

-- Skills in use in a session; `used` is all that is known of a use.
CREATE TABLE skill_uses (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    name    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    used    TEXT    NOT NULL,
    PRIMARY KEY (tenant, session, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX skill_uses_name ON skill_uses (tenant, name);
