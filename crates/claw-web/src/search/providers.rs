//! Requests and answers of each provider.

use claw_core::port::{Freshness, SearchRequest, SearchResult};
use claw_net::{HeaderName, HeaderValue, Method, Request, Url, header};
use dom_query::Document;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

use super::SearchProvider;

/// The longest title and excerpt.
const TITLE: usize = 300;
const EXCERPT: usize = 1_000;

/// The reason why an answer holds no results.
pub(super) enum Unread {
    /// The provider asks for proof that a person searches.
    Limited,
    /// It is not in the provider's format.
    Broken(String),
}

/// The request for a search.
pub(super) fn request(
    provider: SearchProvider,
    base: &Url,
    search: &SearchRequest,
    key: Option<&SecretString>,
) -> Result<Request, String> {
    let request = match provider {
        SearchProvider::Brave => brave(base, search)?,
        SearchProvider::Exa => exa(base, search)?,
        SearchProvider::Tavily => tavily(base, search)?,
        SearchProvider::Searxng => searxng(base, search)?,
        SearchProvider::Duckduckgo => duckduckgo(base, search)?,
    };
    let Some(key) = key else { return Ok(request) };
    let key = key.expose_secret().trim();
    let (name, value) = match provider {
        SearchProvider::Brave => (HeaderName::from_static("x-subscription-token"), key.to_owned()),
        SearchProvider::Exa => (HeaderName::from_static("x-api-key"), key.to_owned()),
        _ => (header::AUTHORIZATION, format!("Bearer {key}")),
    };
    let mut value =
        HeaderValue::try_from(value).map_err(|_| "has a key that cannot be sent in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(request.header(name, value))
}

fn at(base: &Url, path: &str) -> Result<Url, String> {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    Ok(url)
}

fn get(url: Url) -> Request {
    Request::new(Method::GET, url).header(header::ACCEPT, HeaderValue::from_static("application/json"))
}

fn post(url: Url, body: &Value) -> Request {
    let json = HeaderValue::from_static("application/json");
    Request::new(Method::POST, url)
        .header(header::CONTENT_TYPE, json.clone())
        .header(header::ACCEPT, json)
        .body(body.to_string())
}

fn brave(base: &Url, search: &SearchRequest) -> Result<Request, String> {
    let mut url = at(base, "res/v1/web/search")?;
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("q", &search.query).append_pair("count", &search.count.to_string());
        if let Some(country) = &search.country {
            query.append_pair("country", &country.to_uppercase());
        }
        if let Some(language) = &search.language {
            query.append_pair("search_lang", language);
        }
        if let Some(freshness) = &search.freshness {
            query.append_pair(
                "freshness",
                &match freshness {
                    Freshness::Day => "pd".to_owned(),
                    Freshness::Week => "pw".to_owned(),
                    Freshness::Month => "pm".to_owned(),
                    Freshness::Year => "py".to_owned(),
                    Freshness::Between(from, to) => format!("{from}to{to}"),
                },
            );
        }
    }
    Ok(get(url))
}

fn exa(base: &Url, search: &SearchRequest) -> Result<Request, String> {
    let mut body = json!({
        "query": search.query,
        "numResults": search.count,
        "contents": { "text": { "maxCharacters": EXCERPT } },
    });
    if let Some(country) = &search.country {
        body["userLocation"] = json!(country.to_uppercase());
    }
    match &search.freshness {
        Some(Freshness::Between(from, to)) => {
            body["startPublishedDate"] = json!(format!("{from}T00:00:00.000Z"));
            body["endPublishedDate"] = json!(format!("{to}T23:59:59.999Z"));
        }
        Some(age) => {
            let days = match age {
                Freshness::Day => 1,
                Freshness::Week => 7,
                Freshness::Month => 31,
                _ => 366,
            };
            body["startPublishedDate"] = json!(days_ago(days));
        }
        None => {}
    }
    Ok(post(at(base, "search")?, &body))
}

fn tavily(base: &Url, search: &SearchRequest) -> Result<Request, String> {
    let mut body = json!({ "query": search.query, "max_results": search.count });
    match &search.freshness {
        Some(Freshness::Between(from, to)) => {
            body["start_date"] = json!(from);
            body["end_date"] = json!(to);
        }
        Some(age) => body["time_range"] = json!(span(age)),
        None => {}
    }
    Ok(post(at(base, "search")?, &body))
}

fn searxng(base: &Url, search: &SearchRequest) -> Result<Request, String> {
    let mut url = at(base, "search")?;
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("q", &search.query).append_pair("format", "json");
        match (&search.language, &search.country) {
            (Some(language), Some(country)) => {
                query.append_pair("language", &format!("{language}-{}", country.to_uppercase()));
            }
            (Some(language), None) => {
                query.append_pair("language", language);
            }
            _ => {}
        }
        if let Some(age) = search.freshness.as_ref().filter(|age| !matches!(age, Freshness::Between(..))) {
            query.append_pair("time_range", span(age));
        }
    }
    Ok(get(url))
}

fn duckduckgo(base: &Url, search: &SearchRequest) -> Result<Request, String> {
    let mut url = at(base, "html/")?;
    {
        let mut query = url.query_pairs_mut();
        query.append_pair("q", &search.query);
        if let Some(country) = &search.country {
            let language = search.language.as_deref().unwrap_or("en");
            query.append_pair("kl", &format!("{}-{language}", country.to_lowercase()));
        }
        if let Some(freshness) = &search.freshness {
            query.append_pair(
                "df",
                &match freshness {
                    Freshness::Day => "d".to_owned(),
                    Freshness::Week => "w".to_owned(),
                    Freshness::Month => "m".to_owned(),
                    Freshness::Year => "y".to_owned(),
                    Freshness::Between(from, to) => format!("{from}..{to}"),
                },
            );
        }
    }
    let accept = HeaderValue::from_static("text/html");
    Ok(Request::new(Method::GET, url).header(header::ACCEPT, accept).redirects(2))
}

fn span(age: &Freshness) -> &'static str {
    match age {
        Freshness::Day => "day",
        Freshness::Week => "week",
        Freshness::Month => "month",
        Freshness::Year | Freshness::Between(..) => "year",
    }
}

/// The date so many days ago.
fn days_ago(days: i64) -> String {
    let then = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * days);
    then.strftime("%Y-%m-%dT00:00:00.000Z").to_string()
}

/// The results in an answer.
pub(super) fn read(provider: SearchProvider, body: &[u8]) -> Result<Vec<SearchResult>, Unread> {
    if provider == SearchProvider::Duckduckgo {
        return page(&String::from_utf8_lossy(body));
    }
    let answer: Value =
        serde_json::from_slice(body).map_err(|_| Unread::Broken("it is not JSON".to_owned()))?;
    let (list, excerpt, date) = match provider {
        SearchProvider::Brave => ("/web/results", "description", &["page_age", "age"][..]),
        SearchProvider::Exa => ("/results", "text", &["publishedDate"][..]),
        SearchProvider::Tavily => ("/results", "content", &["published_date"][..]),
        _ => ("/results", "content", &["publishedDate"][..]),
    };
    let items = match answer.pointer(list) {
        Some(Value::Array(items)) => items,
        // Brave leaves the list out if nothing was found.
        None if provider == SearchProvider::Brave && answer.get("query").is_some() => return Ok(Vec::new()),
        _ => return Err(Unread::Broken(format!("it has no list at `{list}`"))),
    };
    let text = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let result = |item: &Value| {
        let url = Some(text(item, "url")).filter(|url| is_page(url))?;
        let highlights = item.pointer("/highlights/0").and_then(Value::as_str).map(str::to_owned);
        let words = Some(text(item, excerpt)).filter(|words| !words.is_empty()).or(highlights);
        let title = Some(words_of(&text(item, "title"), TITLE)).filter(|title| !title.is_empty());
        Some(SearchResult {
            title: title.unwrap_or_else(|| url.clone()),
            excerpt: words_of(&words.unwrap_or_default(), EXCERPT),
            date: date.iter().map(|key| words_of(&text(item, key), 40)).find(|date| !date.is_empty()),
            url,
            providers: Vec::new(),
        })
    };
    Ok(items.iter().take(50).filter_map(result).collect())
}

/// The results on DuckDuckGo's page.
fn page(html: &str) -> Result<Vec<SearchResult>, Unread> {
    let document = Document::from(html);
    let mut results = Vec::new();
    for node in document.select(".result").nodes() {
        if node.has_class("result--ad") {
            continue;
        }
        let result = dom_query::Selection::from(*node);
        let link = result.select_single("a.result__a");
        let Some(url) = link.attr("href").and_then(|href| target(&href)).filter(|url| is_page(url)) else {
            continue;
        };
        results.push(SearchResult {
            title: words_of(&link.text(), TITLE),
            excerpt: words_of(&result.select_single(".result__snippet").text(), EXCERPT),
            url,
            ..SearchResult::default()
        });
    }
    if !results.is_empty() || document.select_single(".no-results").exists() {
        return Ok(results);
    }
    let text = html.to_ascii_lowercase();
    match text.contains("anomaly") || text.contains("captcha") {
        true => Err(Unread::Limited),
        false => Err(Unread::Broken("the page has no results".to_owned())),
    }
}

/// The address behind a link of DuckDuckGo.
fn target(href: &str) -> Option<String> {
    let whole = if href.starts_with("//") { format!("https:{href}") } else { href.to_owned() };
    let url = Url::parse(&whole).ok()?;
    let is_own =
        url.host_str().is_some_and(|host| host == "duckduckgo.com" || host.ends_with(".duckduckgo.com"));
    if !is_own {
        return Some(whole);
    }
    let mut pairs = url.query_pairs();
    pairs.find(|(name, _)| name == "uddg").map(|(_, value)| value.into_owned())
}

fn is_page(url: &str) -> bool {
    claw_core::port::WebAddress::parse(url).is_ok()
}

/// Words without markup and invisible characters, on one line.
fn words_of(text: &str, most: usize) -> String {
    let plain = match text.contains(['<', '&']) {
        true => Document::fragment(text).text().to_string(),
        false => text.to_owned(),
    };
    crate::page::label(&plain, most).unwrap_or_default()
}
