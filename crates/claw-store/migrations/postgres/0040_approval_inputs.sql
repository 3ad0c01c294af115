-- The values that a person gave to a request for input, as JSON, until the call that asked has taken them.
ALTER TABLE approvals ADD COLUMN input_values TEXT;
