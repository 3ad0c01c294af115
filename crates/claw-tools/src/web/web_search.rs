//! `web_search`: finds titles, addresses and excerpts of pages, fenced as data.

use claw_core::message::fenced;
use claw_core::port::{Freshness, SearchAnswer, SearchRequest};
use claw_core::tool::{Ask, Call, Effect, Facts, Group, Meta, Need, Origin, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The longest query.
const LONGEST: usize = 500;

#[derive(Default)]
pub(crate) struct WebSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Words to search for.
    query: String,
    /// Number of results; 5 if left out.
    #[schemars(range(min = 1, max = 10))]
    count: Option<usize>,
    /// Country of the results, as two letters like `de`.
    country: Option<String>,
    /// Language of the results, as two letters like `en`.
    search_lang: Option<String>,
    /// Age of the results: `pd` (day), `pw` (week), `pm` (month), `py` (year), or `2026-01-01to2026-02-01`.
    freshness: Option<String>,
}

impl Tool for WebSearch {
    type Args = Args;
    const META: Meta = Meta::new("web_search", Group::Web)
        .effects(&[Effect::Network])
        .needs(&[Need::Web])
        .aliases(&["WebSearch"])
        .timeout_secs(120)
        .about("Search the web; returns titles, addresses and excerpts.");

    /// The settings tell the origins of the search providers; the port compares them with those it really
    /// connects to.
    fn plan(&self, facts: &Facts, _: &Args) -> Plan {
        let origins =
            facts.settings.get("origins").and_then(|origins| Vec::<Origin>::deserialize(origins).ok());
        let asks = origins.unwrap_or_default().into_iter().map(|origin| Ask::Host { origin });
        asks.fold(Plan::of(&Self::META), Plan::asking)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let request = request(args, &call.facts().settings)?;
        let answer = call.web()?.search(&request).await?;
        let text = fenced(&shown(&request.query, &answer), call.id(), "web_search");
        let details = json!({
            "query": request.query,
            "results": answer.results,
            "providers": answer.providers,
            "failed": answer.failed,
        });
        let mut output = Output::text(text).with_details(details);
        output.usage = answer.usage;
        Ok(output)
    }
}

fn request(args: Args, settings: &Value) -> Result<SearchRequest, ToolError> {
    let query = args.query.split_whitespace().collect::<Vec<_>>().join(" ");
    let chars = query.chars().count();
    if query.is_empty() || chars > LONGEST {
        return Err(ToolError::invalid(format!("the query has {chars} characters; use 1 to {LONGEST}")));
    }
    let two_letters = |what: &str, code: Option<String>| match code {
        Some(code) if code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            Ok(Some(code.to_ascii_lowercase()))
        }
        Some(code) if code.is_empty() => Ok(None),
        Some(code) => Err(ToolError::invalid(format!("`{code}` is not a {what} of two letters"))),
        None => Ok(None),
    };
    let order = settings.get("order").and_then(|order| Vec::deserialize(order).ok()).unwrap_or_default();
    Ok(SearchRequest {
        query,
        count: args.count.unwrap_or(5).clamp(1, 10),
        country: two_letters("country", args.country)?,
        language: two_letters("language", args.search_lang)?,
        freshness: args.freshness.filter(|text| !text.is_empty()).map(|text| freshness(&text)).transpose()?,
        order,
    })
}

fn freshness(text: &str) -> Result<Freshness, ToolError> {
    let is_date = |text: &str| text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10;
    Ok(match text {
        "pd" | "day" => Freshness::Day,
        "pw" | "week" => Freshness::Week,
        "pm" | "month" => Freshness::Month,
        "py" | "year" => Freshness::Year,
        range => match range.split_once("to") {
            Some((from, to)) if is_date(from) && is_date(to) && from <= to => {
                Freshness::Between(from.to_owned(), to.to_owned())
            }
            _ => {
                return Err(ToolError::invalid(format!("`{range}` is not a valid `freshness`"))
                    .try_instead("use `pd`, `pw`, `pm`, `py` or `2026-01-01to2026-02-01`"));
            }
        },
    })
}

/// The results as the model reads them.
fn shown(query: &str, answer: &SearchAnswer) -> String {
    if answer.results.is_empty() {
        return format!("Nothing was found for: {query}");
    }
    let results = answer.results.iter().enumerate().map(|(at, result)| {
        let date = result.date.as_ref().map(|date| format!(" ({date})")).unwrap_or_default();
        let mut text = format!("{}. {}{date}\n   {}", at + 1, result.title, result.url);
        if !result.excerpt.is_empty() {
            text.push_str("\n   ");
            text.push_str(&result.excerpt);
        }
        text
    });
    results.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests;
