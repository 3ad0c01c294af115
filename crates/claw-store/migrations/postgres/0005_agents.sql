-- Of an agent that was removed the version stays, so that it never falls.
CREATE TABLE agents (
    tenant  TEXT   NOT NULL,
    id      TEXT   COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    setup   TEXT,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TRIGGER agents_changed AFTER INSERT OR UPDATE ON agents
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('agents');

-- Settings of tools. The tenant is empty, as no tenant's id is, where they hold for everyone.
CREATE TABLE tool_settings (
    tenant   TEXT   NOT NULL,
    tool     TEXT   COLLATE "C" NOT NULL,
    settings TEXT   NOT NULL,
    updated  BIGINT NOT NULL,
    PRIMARY KEY (tenant, tool)
);

-- As `clawsmith_changed`, of a row that is gone.
CREATE FUNCTION clawsmith_settings_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clawsmith', 'settings ' || OLD.tenant);
    RETURN NULL;
END
$$;

CREATE TRIGGER tool_settings_changed AFTER INSERT OR UPDATE ON tool_settings
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('settings');
CREATE TRIGGER tool_settings_removed AFTER DELETE ON tool_settings
    FOR EACH ROW EXECUTE FUNCTION clawsmith_settings_removed();
