-- Tools that are defined at run time. An empty agent is none: the tool is the tenant's, for all its agents.
-- `variables` are the names of variables in `env`, which is sealed.
CREATE TABLE custom_tools (
    tenant     TEXT    COLLATE "C" NOT NULL,
    agent      TEXT    COLLATE "C" NOT NULL,
    name       TEXT    COLLATE "C" NOT NULL,
    definition TEXT    NOT NULL,
    variables  TEXT    NOT NULL,
    enabled    BOOLEAN NOT NULL,
    env        BYTEA   NOT NULL CONSTRAINT custom_tools_sealed CHECK (octet_length(env) >= 37 AND get_byte(env, 0) < 9),
    version    BIGINT  NOT NULL,
    at         BIGINT  NOT NULL,
    PRIMARY KEY (tenant, agent, name)
);

-- As `clawsmith_changed`, for rows that may be deleted too.
CREATE FUNCTION clawsmith_tools_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clawsmith', 'tools ' || coalesce(NEW.tenant, OLD.tenant));
    RETURN NULL;
END
$$;

CREATE TRIGGER custom_tools_changed AFTER INSERT OR UPDATE OR DELETE ON custom_tools
    FOR EACH ROW EXECUTE FUNCTION clawsmith_tools_changed();
