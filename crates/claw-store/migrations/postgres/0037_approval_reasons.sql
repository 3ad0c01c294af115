-- The reason that a person gave with a no.
ALTER TABLE approvals ADD COLUMN reason TEXT;
