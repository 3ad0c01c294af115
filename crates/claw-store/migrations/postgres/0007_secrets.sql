-- As `clawsmith_changed`, for rows that may be deleted too.
CREATE FUNCTION clawsmith_secrets_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clawsmith', 'secrets ' || coalesce(NEW.tenant, OLD.tenant));
    RETURN NULL;
END
$$;

-- Sealed values. No text begins with a byte below 9, so a plain one is refused here too.
-- An empty agent is none: what belongs to the tenant, for all its agents.
CREATE TABLE secrets (
    tenant TEXT   COLLATE "C" NOT NULL,
    agent  TEXT   COLLATE "C" NOT NULL,
    name   TEXT   COLLATE "C" NOT NULL,
    value  BYTEA  NOT NULL CONSTRAINT secrets_sealed CHECK (octet_length(value) >= 37 AND get_byte(value, 0) < 9),
    made   BIGINT NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, name)
);

-- `variables` are the names in `env`.
CREATE TABLE programs (
    tenant    TEXT    COLLATE "C" NOT NULL,
    agent     TEXT    COLLATE "C" NOT NULL,
    name      TEXT    COLLATE "C" NOT NULL,
    settings  TEXT    NOT NULL,
    variables TEXT    NOT NULL,
    enabled   BOOLEAN NOT NULL,
    env       BYTEA   NOT NULL CONSTRAINT programs_sealed CHECK (octet_length(env) >= 37 AND get_byte(env, 0) < 9),
    at        BIGINT  NOT NULL,
    PRIMARY KEY (tenant, agent, name)
);

CREATE TRIGGER secrets_changed AFTER INSERT OR UPDATE OR DELETE ON secrets
    FOR EACH ROW EXECUTE FUNCTION clawsmith_secrets_changed();
CREATE TRIGGER programs_changed AFTER INSERT OR UPDATE OR DELETE ON programs
    FOR EACH ROW EXECUTE FUNCTION clawsmith_secrets_changed();
