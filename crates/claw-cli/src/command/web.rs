//! `clawsmith web`: `web_fetch` and `web_search` for people.

use clap::Args;
use serde_json::{Map, Value, json};

use super::tools::{CallOptions, CallTool};
use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::Outcome;

subcommands! {
    /// The operations on the web.
    pub(crate) enum Web {
        /// Fetch a page and print it as Markdown.
        Fetch(Fetch),
        /// Search the web with the configured providers.
        Search(Search),
    }
}

/// The page, and the form of its text.
#[derive(Debug, Args)]
pub(crate) struct Fetch {
    /// Address of the page, with `http://` or `https://`.
    url: String,
    /// The form of the text.
    #[arg(long, value_parser = one_of(MODES), default_value = "markdown")]
    mode: &'static str,
    /// Print at most so many characters; the rest is kept for `result_read`.
    #[arg(long, value_name = "N")]
    max_chars: Option<u32>,
    #[command(flatten)]
    options: CallOptions,
}

/// The form of a page's text, as `web_fetch` names it.
const MODES: Choices<&str> = &[
    ("markdown", "The article as Markdown", "markdown"),
    ("text", "The article as plain text", "text"),
    ("raw", "The unmodified body", "raw"),
];

impl Fetch {
    fn run(self, session: &mut Session) -> Outcome {
        let mut args = json!({ "url": self.url, "extract_mode": self.mode });
        if let Some(most) = self.max_chars {
            args["max_chars"] = json!(most);
        }
        CallTool::of("web_fetch", Some(args.to_string()), self.options).run(session)
    }
}

/// The query, and filters on its results.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to search for.
    #[arg(required = true)]
    query: Vec<String>,
    /// Number of results, 1 to 10.
    #[arg(long, value_name = "N")]
    count: Option<u32>,
    /// Country of the results, as two letters.
    #[arg(long)]
    country: Option<String>,
    /// Language of the results, as two letters.
    #[arg(long)]
    lang: Option<String>,
    /// Age of the results: pd, pw, pm, py (past day, week, month, year), or 2026-01-01to2026-02-01.
    #[arg(long)]
    freshness: Option<String>,
    #[command(flatten)]
    options: CallOptions,
}

impl Search {
    fn run(self, session: &mut Session) -> Outcome {
        let mut args = Map::new();
        args.insert("query".to_owned(), json!(self.query.join(" ")));
        let given = [
            ("count", self.count.map(Value::from)),
            ("country", self.country.map(Value::from)),
            ("search_lang", self.lang.map(Value::from)),
            ("freshness", self.freshness.map(Value::from)),
        ];
        args.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        CallTool::of("web_search", Some(Value::Object(args).to_string()), self.options).run(session)
    }
}
