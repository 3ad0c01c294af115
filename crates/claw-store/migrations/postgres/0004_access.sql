-- Who may come in. Rows of other tables may be of tenants that are not here.
CREATE TABLE tenants (
    tenant   TEXT    NOT NULL PRIMARY KEY,
    name     TEXT    NOT NULL,
    created  BIGINT  NOT NULL,
    disabled BOOLEAN NOT NULL
);

-- The tenant of an installation that has only one is always there.
INSERT INTO tenants (tenant, name, created, disabled) VALUES ('main', 'main', 0, FALSE);

CREATE TABLE users (
    tenant   TEXT    NOT NULL REFERENCES tenants (tenant),
    id       TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    role     TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'owner')),
    created  BIGINT  NOT NULL,
    disabled BOOLEAN NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- Of a key only the SHA-256 is kept; it is what a key is found by.
CREATE TABLE api_keys (
    id        UUID   NOT NULL PRIMARY KEY,
    hash      TEXT   NOT NULL UNIQUE,
    tenant    TEXT   NOT NULL REFERENCES tenants (tenant),
    user_id   TEXT,
    label     TEXT   NOT NULL,
    scopes    TEXT   NOT NULL,
    created   BIGINT NOT NULL,
    expires   BIGINT,
    revoked   BIGINT,
    last_used BIGINT,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
) WITH (fillfactor = 50);

CREATE INDEX api_keys_tenant ON api_keys (tenant, created, id);

CREATE TRIGGER tenants_changed AFTER INSERT OR UPDATE ON tenants
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('access');
CREATE TRIGGER users_changed AFTER INSERT OR UPDATE ON users
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('access');
-- That a key was used is no change.
CREATE TRIGGER api_keys_changed AFTER INSERT OR UPDATE OF revoked ON api_keys
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('access');
