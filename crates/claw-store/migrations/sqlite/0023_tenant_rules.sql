-- The tool rules of a tenant, over the deployment's, as JSON; `null` where it has none.
ALTER TABLE tenants ADD COLUMN policy TEXT NOT NULL DEFAULT 'null';
