-- MCP servers with their grants, their tools and the requests for access. `body` is JSON.
CREATE TABLE mcp_servers (
    tenant TEXT   COLLATE "C" NOT NULL,
    name   TEXT   COLLATE "C" NOT NULL,
    body   TEXT   NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- `subject` is `agent:ID` or `user:ID`.
CREATE TABLE mcp_grants (
    tenant  TEXT   COLLATE "C" NOT NULL,
    server  TEXT   COLLATE "C" NOT NULL,
    subject TEXT   COLLATE "C" NOT NULL,
    body    TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (tenant, server, subject)
);

CREATE TABLE mcp_tools (
    tenant TEXT   COLLATE "C" NOT NULL,
    server TEXT   COLLATE "C" NOT NULL,
    name   TEXT   COLLATE "C" NOT NULL,
    body   TEXT   NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (tenant, server, name)
);

CREATE TABLE mcp_requests (
    tenant TEXT   COLLATE "C" NOT NULL,
    id     TEXT   COLLATE "C" NOT NULL,
    server TEXT   COLLATE "C" NOT NULL,
    body   TEXT   NOT NULL,
    at     BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- As `clawsmith_changed`, for rows that may be deleted too.
CREATE FUNCTION clawsmith_mcp_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clawsmith', 'mcp ' || coalesce(NEW.tenant, OLD.tenant));
    RETURN NULL;
END
$$;

CREATE TRIGGER mcp_servers_changed AFTER INSERT OR UPDATE OR DELETE ON mcp_servers
    FOR EACH ROW EXECUTE FUNCTION clawsmith_mcp_changed();
CREATE TRIGGER mcp_grants_changed AFTER INSERT OR UPDATE OR DELETE ON mcp_grants
    FOR EACH ROW EXECUTE FUNCTION clawsmith_mcp_changed();
CREATE TRIGGER mcp_tools_changed AFTER INSERT OR UPDATE OR DELETE ON mcp_tools
    FOR EACH ROW EXECUTE FUNCTION clawsmith_mcp_changed();
CREATE TRIGGER mcp_requests_changed AFTER INSERT OR UPDATE OR DELETE ON mcp_requests
    FOR EACH ROW EXECUTE FUNCTION clawsmith_mcp_changed();
