-- Pages of the ledger are found by agent, user and tool. The columns repeat what the line says; a tool's name that is no plain word
-- has none. A line that does not read is left alone: verifying the ledger names it.
ALTER TABLE ledger ADD COLUMN agent TEXT;
ALTER TABLE ledger ADD COLUMN user_id TEXT;
ALTER TABLE ledger ADD COLUMN tool TEXT;

-- The field as JSON writes it. A line in which any text has a NUL is not read, so a sign stands for it.
CREATE FUNCTION pg_temp.field(line TEXT, name TEXT) RETURNS TEXT LANGUAGE plpgsql AS $$
BEGIN
    RETURN substring((replace(line, '\u0000', '\ufffd')::json -> name)::text from '^"([^"\\]+)"$');
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;

UPDATE ledger SET
    agent = pg_temp.field(line, 'agent'),
    user_id = pg_temp.field(line, 'user'),
    tool = substring(pg_temp.field(line, 'tool') from '^[a-zA-Z0-9_-]+$');

CREATE INDEX ledger_agent ON ledger (tenant, agent, position);
CREATE INDEX ledger_user ON ledger (tenant, user_id, position);
CREATE INDEX ledger_tool ON ledger (tenant, tool, position);
