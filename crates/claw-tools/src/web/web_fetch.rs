//! `web_fetch`: fetches a web page as Markdown, fenced as data.

use claw_core::message::fenced;
use claw_core::port::{ExtractMode, FetchRequest, WebAddress, WebPage};
use claw_core::tool::{Ask, Call, Effect, Effects, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Characters of a page that the model reads by default.
const USUAL: usize = 20_000;
/// Most bytes of text in the details.
const DETAILS: usize = 64 * 1024;

#[derive(Default)]
pub(crate) struct WebFetch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Address of the page, with `http://` or `https://`.
    url: String,
    /// `markdown`: the article; `text`: the same without markup; `raw`: the unchanged body.
    #[serde(default)]
    extract_mode: ExtractMode,
    /// The most characters to return, default 20000; the rest is kept for `result_read`.
    #[schemars(range(min = 500, max = 200_000))]
    max_chars: Option<usize>,
}

impl Tool for WebFetch {
    type Args = Args;
    const META: Meta = Meta::new("web_fetch", Group::Web)
        .effects(&[Effect::Network])
        .needs(&[Need::Web])
        .aliases(&["WebFetch"])
        .timeout_secs(120)
        .about("Fetch a public web page and return it as readable text.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        match WebAddress::parse(&args.url) {
            Ok(address) => {
                let (origin, url) = (address.origin(), address.to_string());
                Plan::of(&Self::META).asking(Ask::Fetch { origin, url })
            }
            // An invalid URL is refused when the tool runs, with the reason.
            Err(_) => Plan { effects: Effects::NONE, asks: Vec::new(), given: None },
        }
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let address = WebAddress::parse(&args.url).map_err(|error| ToolError::invalid(error.reason))?;
        let block = blocked(&call.facts().settings)?;
        let mode = args.extract_mode;
        let page = call.web()?.fetch(&FetchRequest { address, mode, block }).await?;
        let text = fenced(&shown(&page), call.id(), "web_fetch");
        let most = args.max_chars.unwrap_or(USUAL).clamp(500, 200_000);
        let bytes = text.char_indices().nth(most).map(|(at, _)| at);
        let output = Output::text(text).with_details(details(&page, mode, most)?);
        Ok(match bytes {
            Some(bytes) => output.at_most(bytes),
            None => output,
        })
    }
}

/// The hosts that the tenant's settings block. An invalid setting blocks everything.
fn blocked(settings: &Value) -> Result<Vec<String>, ToolError> {
    match settings.get("block") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(block) => Vec::deserialize(block).map_err(|error| {
            ToolError::failed("`settings.web_fetch.block` is not a list of hosts, so nothing is fetched")
                .try_instead("a person has to fix the setting")
                .because(error)
        }),
    }
}

/// The page with its heading, as the model reads it.
fn shown(page: &WebPage) -> String {
    let mut head = Vec::new();
    head.extend(page.title.as_ref().map(|title| format!("# {title}")));
    head.push(page.url.clone());
    let about: Vec<&str> =
        [&page.author, &page.date, &page.site].into_iter().flatten().map(String::as_str).collect();
    if !about.is_empty() {
        head.push(about.join(" · "));
    }
    if page.needs_browser {
        head.push(
            "[This page shows its content only in a browser that runs its scripts; below is the text that \
             it has without them.]"
                .to_owned(),
        );
    }
    let text = if page.text.trim().is_empty() { "[The page has no readable text.]" } else { &page.text };
    format!("{}\n\n{text}", head.join("\n"))
}

/// The page as data: its text without the fence, up to the requested length.
fn details(page: &WebPage, mode: ExtractMode, most: usize) -> Result<Value, ToolError> {
    let mut details = serde_json::to_value(page).map_err(ToolError::internal)?;
    let chars = page.text.chars().count();
    let end = page.text.char_indices().nth(most).map_or(page.text.len(), |(at, _)| at);
    let end = page.text.floor_char_boundary(end.min(DETAILS));
    let key = if mode == ExtractMode::Markdown { "markdown" } else { "text" };
    details[key] = json!(page.text.get(..end).unwrap_or_default());
    details["chars"] = json!(chars);
    details["cut"] = json!(end < page.text.len());
    Ok(details)
}

#[cfg(test)]
mod tests;
