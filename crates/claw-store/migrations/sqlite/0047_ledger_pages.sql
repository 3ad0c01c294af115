-- Pages of the ledger are found by agent, user and tool. The columns repeat what the line says; a tool's name that is no plain word
-- has none.
ALTER TABLE ledger ADD COLUMN agent TEXT;
ALTER TABLE ledger ADD COLUMN user_id TEXT;
ALTER TABLE ledger ADD COLUMN tool TEXT;

UPDATE ledger SET
    agent = json_extract(line, '$.agent'),
    user_id = json_extract(line, '$.user'),
    tool = CASE WHEN json_extract(line, '$.tool') <> '' AND json_extract(line, '$.tool') NOT GLOB '*[^a-zA-Z0-9_-]*'
                THEN json_extract(line, '$.tool') END
WHERE json_valid(line);

CREATE INDEX ledger_agent ON ledger (tenant, agent, position);
CREATE INDEX ledger_user ON ledger (tenant, user_id, position);
CREATE INDEX ledger_tool ON ledger (tenant, tool, position);
