use reqwest::Method;
use reqwest::header::{self, HeaderName, HeaderValue};
use url::Url;

use super::redirected;
use crate::origin::Origin;
use crate::request::Request;

fn request(method: Method, url: &str) -> Request {
    let named = |name: &'static str| HeaderName::from_static(name);
    let value = |value| HeaderValue::from_static(value);
    Request::new(method, Url::parse(url).unwrap())
        .header(header::AUTHORIZATION, value("hunter2"))
        .header(header::COOKIE, value("hunter2"))
        .header(named("x-api-key"), value("hunter2"))
        .header(named("x-goog-api-key"), value("hunter2"))
        .header(named("x-anything"), value("hunter2"))
        .header(header::ACCEPT, value("*/*"))
}

fn names_after(from: &str, to: &str) -> Result<Vec<String>, String> {
    let request = request(Method::GET, from);
    let origin = Origin::of(&request.url).unwrap();
    let request = redirected(request, Url::parse(to).unwrap(), 302, &origin).map_err(|e| e.to_string())?;
    Ok(request.headers.keys().map(|name| name.to_string()).collect())
}

#[test]
fn another_origin_gets_harmless_headers_only() {
    let from = "https://a.example/x";
    for to in [
        "https://b.example/x",
        "https://a.example:444/x",
        "https://a.example.evil/x",
        "https://b.a.example/x",
    ] {
        assert_eq!(names_after(from, to).unwrap(), ["accept"], "{to}");
    }
    assert_eq!(names_after(from, "https://a.example:443/y").unwrap().len(), 6);
}

#[test]
fn refuses_to_leave_https() {
    let error = names_after("https://a.example/x", "http://a.example/x").unwrap_err();
    assert!(error.contains("from https to http"), "{error}");
    assert!(names_after("http://a.example/x", "https://a.example/x").is_ok());
}

#[test]
fn a_post_becomes_a_get_where_http_says_so() {
    for (status, method, expected) in [
        (301, Method::POST, Method::GET),
        (302, Method::POST, Method::GET),
        (303, Method::PUT, Method::GET),
        (303, Method::HEAD, Method::HEAD),
        (302, Method::PUT, Method::PUT),
        (307, Method::POST, Method::POST),
        (308, Method::POST, Method::POST),
    ] {
        let before = request(method, "https://a.example/x").body("words");
        let origin = Origin::of(&before.url).unwrap();
        let after = redirected(before, Url::parse("https://a.example/y").unwrap(), status, &origin).unwrap();
        assert_eq!(after.body.is_empty(), expected == Method::GET, "{status}");
        assert_eq!(after.method, expected, "{status}");
    }
}
