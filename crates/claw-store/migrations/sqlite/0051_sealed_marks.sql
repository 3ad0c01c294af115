-- The tenants whose secrets, programs or custom tools ever changed, and the mark of the last change. Each change gets a mark above
-- all others, so a process that knows one reads the tenants that changed since, and no other.
CREATE TABLE sealed_marks (
    tenant TEXT    NOT NULL PRIMARY KEY,
    mark   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sealed_marks_in_order ON sealed_marks (mark);

INSERT INTO sealed_marks (tenant, mark)
    SELECT tenant, row_number() OVER (ORDER BY tenant)
    FROM (SELECT tenant FROM secrets UNION SELECT tenant FROM programs UNION SELECT tenant FROM custom_tools) AS sealed;

CREATE TRIGGER secrets_marked_insert AFTER INSERT ON secrets BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT NEW.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;
CREATE TRIGGER secrets_marked_update AFTER UPDATE ON secrets BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT NEW.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;
CREATE TRIGGER secrets_marked_delete AFTER DELETE ON secrets BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT OLD.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;

CREATE TRIGGER programs_marked_insert AFTER INSERT ON programs BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT NEW.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;
CREATE TRIGGER programs_marked_update AFTER UPDATE ON programs BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT NEW.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;
CREATE TRIGGER programs_marked_delete AFTER DELETE ON programs BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT OLD.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;

CREATE TRIGGER custom_tools_marked_insert AFTER INSERT ON custom_tools BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT NEW.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;
CREATE TRIGGER custom_tools_marked_update AFTER UPDATE ON custom_tools BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT NEW.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;
CREATE TRIGGER custom_tools_marked_delete AFTER DELETE ON custom_tools BEGIN
    INSERT INTO sealed_marks (tenant, mark) SELECT OLD.tenant, coalesce(max(mark), 0) + 1 FROM sealed_marks WHERE true
        ON CONFLICT (tenant) DO UPDATE SET mark = excluded.mark;
END;
