-- Published skills. `newest` is the number of the newest version; 0 before the first is stored.
CREATE TABLE skills (
    tenant     TEXT    NOT NULL,
    name       TEXT    COLLATE "C" NOT NULL,
    owner      TEXT,
    visibility TEXT    NOT NULL CHECK (visibility IN ('private', 'tenant')),
    pinned     BIGINT,
    newest     BIGINT  NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Versions of skills; `record` is all that is known of one, but for its files.
CREATE TABLE skill_versions (
    tenant  TEXT    NOT NULL,
    name    TEXT    COLLATE "C" NOT NULL,
    version BIGINT  NOT NULL,
    record  TEXT    NOT NULL,
    PRIMARY KEY (tenant, name, version)
);

CREATE TABLE skill_files (
    tenant     TEXT    NOT NULL,
    name       TEXT    COLLATE "C" NOT NULL,
    version    BIGINT  NOT NULL,
    path       TEXT    COLLATE "C" NOT NULL,
    executable BOOLEAN NOT NULL,
    bytes      BYTEA   NOT NULL,
    PRIMARY KEY (tenant, name, version, path)
);

CREATE TABLE skill_grants (
    tenant  TEXT    NOT NULL,
    name    TEXT    COLLATE "C" NOT NULL,
    kind    TEXT    NOT NULL CHECK (kind IN ('agent', 'user')),
    grantee TEXT    COLLATE "C" NOT NULL,
    version BIGINT,
    PRIMARY KEY (tenant, name, kind, grantee)
);

-- Workspace skills that a person has accepted, by the digest of the whole directory.
CREATE TABLE skill_acceptances (
    tenant TEXT    NOT NULL,
    digest BYTEA   NOT NULL CHECK (length(digest) = 32),
    name   TEXT    COLLATE "C" NOT NULL,
    author TEXT    NOT NULL,
    at     BIGINT  NOT NULL,
    PRIMARY KEY (tenant, digest)
);

-- Skills in use in a session; `used` is all that is known of a use.
CREATE TABLE skill_uses (
    tenant  TEXT    NOT NULL,
    session TEXT    NOT NULL,
    name    TEXT    COLLATE "C" NOT NULL,
    at      BIGINT  NOT NULL,
    used    TEXT    NOT NULL,
    PRIMARY KEY (tenant, session, name)
);

CREATE INDEX skill_uses_name ON skill_uses (tenant, name);

-- As `clawsmith_changed`, of rows that are gone.
CREATE FUNCTION clawsmith_skills_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clawsmith', 'skills ' || OLD.tenant);
    RETURN NULL;
END
$$;

CREATE TRIGGER skills_changed AFTER INSERT OR UPDATE ON skills
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('skills');
CREATE TRIGGER skills_removed AFTER DELETE ON skills
    FOR EACH ROW EXECUTE FUNCTION clawsmith_skills_removed();
CREATE TRIGGER skill_grants_changed AFTER INSERT OR UPDATE ON skill_grants
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('skills');
CREATE TRIGGER skill_grants_removed AFTER DELETE ON skill_grants
    FOR EACH ROW EXECUTE FUNCTION clawsmith_skills_removed();
CREATE TRIGGER skill_acceptances_changed AFTER INSERT ON skill_acceptances
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('skills');
CREATE TRIGGER skill_acceptances_removed AFTER DELETE ON skill_acceptances
    FOR EACH ROW EXECUTE FUNCTION clawsmith_skills_removed();
