//! Changing provider, model and key in a configuration file whose other text stays as it is, to the last comment.
//!
//! The text is changed line by line and then read back: a result that does not say exactly what was wanted is not used.

use toml::{Table, Value};

/// The text of a file in which `[models]` says what `new` says: provider, model and the section of that provider. `None`
/// where the file is written such that its lines cannot be replaced one by one.
pub(super) fn replaced(before: &str, new: &str) -> Option<String> {
    let mut wanted: Table = toml::from_str(before).ok()?;
    let mut new: Table = toml::from_str(new).ok()?;
    let Value::Table(mut added) = new.remove("models")? else { return None };
    let provider = added.get("provider")?.as_str()?.to_owned();
    let section = match added.remove("providers") {
        Some(Value::Table(mut providers)) => providers.remove(&provider),
        _ => None,
    };
    let Value::Table(models) = wanted.get_mut("models")? else { return None };
    models.extend(added.clone());
    set_section(models, &provider, section.clone())?;

    let mut lines = Vec::new();
    let mut header: Vec<String> = Vec::new();
    let own = ["models".to_owned(), "providers".to_owned(), provider.clone()];
    let mut is_written = false;
    for line in before.lines() {
        if let Some(names) = table_name(line) {
            header = names;
            if header == own {
                continue;
            }
            lines.push(line.to_owned());
            if header == ["models"] {
                lines.extend(settings(&added));
                is_written = true;
            }
            continue;
        }
        let is_replaced = header == ["models"] && key_of(line).is_some_and(|key| added.contains_key(key));
        if header != own && !is_replaced {
            lines.push(line.to_owned());
        }
    }
    if !is_written {
        lines.extend([String::new(), "[models]".to_owned()]);
        lines.extend(settings(&added));
    }
    if let Some(Value::Table(section)) = &section {
        while lines.last().is_some_and(|line| line.trim().is_empty()) {
            lines.pop();
        }
        lines.extend([String::new(), format!("[models.providers.{provider}]")]);
        lines.extend(settings(section));
    }
    let after = lines.join("\n") + "\n";
    (toml::from_str::<Table>(&after).ok()? == wanted).then_some(after)
}

/// Puts the section of a provider into `[models.providers]`, or takes it out.
fn set_section(models: &mut Table, provider: &str, section: Option<Value>) -> Option<()> {
    let is_empty = {
        let providers = models.entry("providers").or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(providers) = providers else { return None };
        match section {
            Some(section) => providers.insert(provider.to_owned(), section),
            None => providers.remove(provider),
        };
        providers.is_empty()
    };
    if is_empty {
        models.remove("providers");
    }
    Some(())
}

fn settings(table: &Table) -> impl Iterator<Item = String> + '_ {
    table.iter().map(|(key, value)| format!("{key} = {value}"))
}

/// The names of a table that a line begins; `None` for other lines. Quoted names are not taken apart.
fn table_name(line: &str) -> Option<Vec<String>> {
    let inner = line.trim_start().strip_prefix('[')?;
    let (inner, rest) = inner.split_once(']')?;
    let rest = rest.trim_start();
    let is_plain = !inner.starts_with('[') && (rest.is_empty() || rest.starts_with('#'));
    is_plain.then(|| inner.split('.').map(|name| name.trim().to_owned()).collect())
}

/// The key that a line sets.
fn key_of(line: &str) -> Option<&str> {
    Some(line.split_once('=')?.0.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "[models]\nprovider = \"near\"\nmodel = \"large\"\n\n[models.providers.near]\nbase_url = \"http://localhost:1/v1\"\n";

    #[test]
    fn other_settings_and_comments_stay() {
        let before = "# mine\n[limits]   # few\ntimeout_secs = 7\n\n[models] # which\nprovider = \"old\" # was\nmodel = \"small\"\nretries = 3\n\n[models.providers.old]\nkey_env = [\"OLD\"]\n\n[models.providers.near]\nkey_env = [\"NEAR\"]\n\n[agents.ada]\nabout = \"A.\"";
        let after = replaced(before, NEW).unwrap();
        let expected = "# mine\n[limits]   # few\ntimeout_secs = 7\n\n[models] # which\nmodel = \"large\"\nprovider = \"near\"\nretries = 3\n\n[models.providers.old]\nkey_env = [\"OLD\"]\n\n[agents.ada]\nabout = \"A.\"\n\n[models.providers.near]\nbase_url = \"http://localhost:1/v1\"\n";
        assert_eq!(after, expected);
        assert_eq!(replaced(&after, NEW).as_deref(), Some(expected), "once more changes nothing");
    }

    #[test]
    fn a_file_that_cannot_be_changed_line_by_line_is_left_alone() {
        for before in [
            "models = { provider = \"old\", model = \"small\" }\n",
            "[models]\nprovider = \"\"\"\nold\"\"\"\nmodel = \"m\"\n",
            "models.provider = \"old\"\nmodels.model = \"m\"\n",
            "[models]\nprovider = \"old\"\nmodel = \"m\"\n[models.providers]\nnear = { key_env = [\"X\"] }\n",
        ] {
            assert_eq!(replaced(before, NEW), None, "{before}");
        }
    }
}
