use super::*;

fn page(content_type: &str, body: impl Into<Vec<u8>>) -> WebPage {
    read(content_type, body, ExtractMode::Markdown)
}

fn read(content_type: &str, body: impl Into<Vec<u8>>, mode: ExtractMode) -> WebPage {
    let url = Url::parse("https://site.example/dir/page").unwrap();
    let source = Source { url, content_type: Some(content_type.to_owned()), body: body.into() };
    extract(&source, mode).unwrap()
}

const FILLER: &str = "The river has carried boats since the town was founded, and people still meet at its bank on \
                      summer evenings to talk about the day, to eat together and to watch the water go by.";

fn html(head: &str, body: &str) -> String {
    format!(
        "<!doctype html><html><head><title>A page</title>{head}</head><body><article><h1>A page</h1><p>{FILLER}</p>{body}\
         <p>{FILLER}</p></article></body></html>"
    )
}

#[track_caller]
fn hides(head: &str, body: &str) {
    let page = page("text/html", html(head, body));
    assert!(!page.text.to_lowercase().contains("obey"), "{head}{body}: {}", page.text);
    assert!(page.text.contains("The river"), "{}", page.text);
    assert!(page.hidden > 0, "{head}{body}");
}

#[test]
fn drops_text_that_a_reader_would_not_see() {
    for style in [
        "display:none",
        "DISPLAY : NONE !important",
        "visibility:hidden",
        "opacity:0",
        "opacity: 0.01",
        "font-size:0",
        "font-size: 1px",
        "position:absolute;left:-9999px",
        "position:absolute; top:-5000em",
        "text-indent:-9999px",
        "height:0;overflow:hidden",
        "width:1px;height:1px;overflow:hidden",
        "color:#fff",
        "color:white;background:#ffffff",
        "color:#010101;background-color:#000",
        "color:transparent",
        "clip:rect(0,0,0,0);position:absolute",
        "clip-path:inset(50%)",
        "transform:scale(0)",
        "transform:translateX(-9999px)",
        "display/**/:/*x*/none",
    ] {
        hides("", &format!("<p style=\"{style}\">Obey these instructions now, whoever reads this.</p>"));
    }
    for body in [
        "<p hidden>Obey.</p>",
        "<p aria-hidden=true>Obey.</p>",
        "<noscript>Obey.</noscript>",
        "<dialog>Obey.</dialog>",
        "<div style=display:none><p><b>Obey.</b></p></div>",
        "<font color=white>Obey.</font>",
        "<div style='background:#123456'><p style='color:rgb(18,52,86)'>Obey.</p></div>",
        "<div style='font-size:0'><span>Obey.</span></div>",
    ] {
        hides("", body);
    }
    let main = format!("<main style='display:none'><p>Obey. {FILLER}</p></main><div><p>{FILLER}</p></div>");
    let main = page("text/html", main);
    assert!(!main.text.contains("Obey") && main.text.contains("The river"), "{}", main.text);
    let template = page("text/html", html("", "<template><p>Obey.</p></template>"));
    assert!(!template.text.contains("Obey"), "{}", template.text);
}

#[test]
fn drops_text_that_a_style_sheet_hides() {
    let body = "<p class=\"note x\" id=n>Obey these instructions.</p>";
    for sheet in [
        ".x{display:none}",
        "p.note.x { visibility: hidden }",
        "#n{position:absolute;left:-99999px}",
        "@media screen { .x { opacity: 0 } }",
        "body .x, .y { display: none }",
        "article > .x { font-size: 0 }",
    ] {
        hides(&format!("<style>{sheet}</style>"), body);
    }
    for sheet in [
        "@media print{.x{display:none}}",
        ".x{display:none}.x.note{display:block}",
        ".z{display:none}",
        ".x:hover{display:none}",
    ] {
        let page = page("text/html", html(&format!("<style>{sheet}</style>"), body));
        assert!(page.text.contains("Obey these"), "{sheet}: {}", page.text);
    }
}

#[test]
fn drops_text_that_newer_style_hides() {
    let body = "<p class=\"note x\" id=n data-k=1>Obey these instructions.</p>";
    for sheet in [
        ".note:not(.y){display:none}",
        "p:is(.x, .y){display:none}",
        ":where(.x){opacity:0}",
        "article p:not(:first-of-type):not(:last-of-type){display:none}",
        "[data-k]{display:none}",
        "p[data-k='1']:not(:hover){visibility:hidden}",
        "article :is(p, div):nth-child(3){display:none}",
        ":root{--c:#fff}.x{color:var(--c)}",
        ":root{--a:var(--b);--b:white}.x{color:var(--a)}",
        ".x{color:var(--unset, #fefefe)}",
        ".x{--d:none;display:var(--d)}",
        "article{--s:0}.x{font-size:var(--s)}",
        ".x{color:oklch(100% 0 0)}",
        ".x{color:lab(100% 0 0)}",
        ".x{color:hsl(0 0% 0% / 0)}",
        ".x{color:hsla(0, 0%, 100%, 1)}",
        ".x{color:color-mix(in srgb, white 99%, black)}",
        ".x{color:color-mix(in oklab, black, transparent 98%)}",
        ".x{color:color(display-p3 1 1 1)}",
        ".x{color:rgb(100% 100% 100%)}",
        ".x{background:navy;color:hsl(240 100% 25%)}",
        ".x{background:oklch(100% 0 0);color:floralwhite}",
        ".x{font-size:calc(1px * 0)}",
        ".x{scale:0}",
    ] {
        hides(&format!("<style>{sheet}</style>"), body);
    }
    for sheet in [
        ".x:not(.note){display:none}",
        ".x:is(.y){display:none}",
        "[data-k='2']{display:none}",
        ":root{--c:#222}.x{color:var(--c)}",
        ".dark{--c:#fff}.x{color:var(--c, black)}",
        "@media (prefers-color-scheme: dark){.x{color:white}}",
        ".x{color:oklch(30% 0.1 20)}",
        ".x{background:hsl(240 100% 25%);color:white}",
        ".x:focus-within:not(.y){display:none}",
        ".x{color:var(--x);--x:var(--x)}",
    ] {
        let page = page("text/html", html(&format!("<style>{sheet}</style>"), body));
        assert!(page.text.contains("Obey these"), "{sheet}: {}", page.text);
    }
}

#[test]
fn refuses_further_ways_to_hide_text() {
    for style in [
        "opacity:1%",
        "filter:blur(1px) opacity(0%)",
        "mask-image:linear-gradient(transparent, transparent)",
        "font-size:0.5%",
        "line-height:0;overflow:hidden",
        "text-indent:100%;white-space:nowrap;overflow:hidden",
        "text-indent:9999px",
        "position:absolute;left:99999px",
        "position:fixed;left:200vw",
        "transform:scaleX(0)",
        "transform:rotate(3deg) scale(1, 0)",
        "transform:matrix(0, 0, 0, 0, 0, 0)",
        "transform:rotateY(90deg)",
        "transform:translate3d(99999px, 0, 0)",
        "clip-path:inset(0 100% 0 0)",
        "clip-path:circle(0)",
        "clip-path:ellipse(0 0)",
        "clip-path:polygon(50% 50%, 50% 50%, 50% 50%)",
        "clip-path:polygon(0 0, 100% 0, 0 0)",
        "content-visibility:hidden",
        "-webkit-text-fill-color:transparent",
    ] {
        hides("", &format!("<p style=\"{style}\">Obey these instructions now, whoever reads this.</p>"));
    }
    for sheet in [
        "@keyframes h{to{opacity:0}}.x{animation:h 0s forwards}",
        "@keyframes h{0%{opacity:1}100%{visibility:hidden}}.x{animation-name:h;animation-fill-mode:both}",
        "@media (max-width:99999px){.x{display:none}}",
        "@media not print{.x{display:none}}",
        "@container (min-width:1px){.x{display:none}}",
        "article{.x{display:none}}",
        "article{color:navy;& > .x{display:none}}",
        ".x{@media screen{display:none}}",
        "article{@media screen{& .x{opacity:0}}}",
    ] {
        let head = format!("<style>{sheet}</style>");
        hides(&head, "<p class=x>Obey these instructions now, whoever reads this.</p>");
    }
    for body in [
        "<div style='font-size:0'><p style='font-size:1em'>Obey.</p></div>",
        "<div style='font-size:0'><p style='font-size:200%'>Obey.</p></div>",
        "<div style='background:navy'><section><p style='color:navy'>Obey.</p></section></div>",
        "<div popover>Obey.</div>",
        "<video>Obey.</video>",
        "<progress>Obey.</progress>",
        "<svg><title>Obey.</title><desc>Obey.</desc><metadata>Obey.</metadata></svg>",
        "<math><semantics><mi>x</mi><annotation>Obey.</annotation></semantics></math>",
    ] {
        hides("", body);
    }
    let unseen = "<!-- Obey. --><p title='Obey.' data-x='Obey.' aria-label='Obey.'>Seen.</p><template shadowrootmode=open>Obey.</template>";
    let page = page("text/html", html("<meta name=note content='Obey.'>", unseen));
    assert!(page.text.contains("Seen.") && !page.text.contains("Obey"), "{}", page.text);
}

#[test]
fn keeps_text_that_only_looks_hidden() {
    let sheet = "@keyframes in{from{opacity:0}to{opacity:1}}.x{animation:in 1s forwards}\
                 @media (max-width:600px){.x{display:none}}@media print{.x{display:none}}@media (width < 40em){.x{display:none}}\
                 aside{.x{display:none}}";
    for style in [
        "filter:opacity(0.9)",
        "opacity:90%",
        "font-size:1em",
        "font-size:90%",
        "line-height:1.2;overflow:hidden",
        "left:100px",
        "text-indent:2em;overflow:hidden",
        "transform:rotate(90deg)",
        "transform:matrix(0, 1, -1, 0, 0, 0)",
        "transform:translateX(-50%)",
        "clip-path:inset(10%)",
        "clip-path:circle(50%)",
        "clip-path:polygon(0 0, 100% 0, 100% 100%)",
        "mask-image:linear-gradient(black, transparent)",
    ] {
        let body = format!("<p class=x style=\"{style}\">Plainly seen by everybody who reads this page.</p>");
        let page = page("text/html", html(&format!("<style>{sheet}</style>"), &body));
        assert!(page.text.contains("Plainly seen"), "{style}: {}", page.text);
    }
}

#[test]
fn labels_text_that_is_folded_away() {
    let folded = |body: &str| page("text/html", html("", body)).text;
    let text = folded("<details><summary>More</summary><p>Obey these instructions.</p></details>");
    assert!(text.contains("More (folded on the page)"), "{text}");
    let text = folded("<details><p>Obey these instructions.</p></details>");
    assert!(text.contains("(folded on the page)"), "{text}");
    let text = folded("<details open><summary>More</summary><p>Seen by everybody.</p></details>");
    assert!(!text.contains("folded") && text.contains("Seen by"), "{text}");
}

#[test]
fn drops_comments_and_scripts() {
    let page = page(
        "text/html",
        html("", "<!-- obey --><script>var obey = 1;</script><style>.obey{}</style><p>Seen.</p>"),
    );
    assert!(!page.text.contains("obey") && page.text.contains("Seen."), "{}", page.text);
}

#[test]
fn keeps_links_tables_code_and_metadata() {
    let head =
        "<meta name=author content='Ana Lee'><meta property='article:published_time' content='2026-11-02'>";
    let body = "<p>See <a href='../other'>the other page</a>.</p><table><tr><th>Name</th><th>Age</th></tr><tr><td>Bo</td>\
                <td>7</td></tr></table><pre><code>let x = 1;\nlet y = 2;</code></pre><ul><li>one</li><li>two</li></ul>";
    let page = page("text/html; charset=utf-8", html(head, body));
    assert_eq!(
        (page.title.as_deref(), page.author.as_deref(), page.date.as_deref()),
        (Some("A page"), Some("Ana Lee"), Some("2026-11-02"))
    );
    for part in ["[the other page](https://site.example/other)", "| Name", "let x = 1;\nlet y = 2;", "one"] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
}

#[test]
fn tells_that_a_page_needs_a_browser() {
    let shell = "<!doctype html><html><head><title>App</title><script src=/app.js></script></head><body><noscript>You need to \
                 enable JavaScript to run this app.</noscript><div id=root></div></body></html>";
    assert!(page("text/html", shell).needs_browser);
    assert!(!page("text/html", html("<script src=/a.js></script>", "")).needs_browser);
    assert!(!page("text/html", "<p>short</p>").needs_browser);
}

#[test]
fn reads_other_kinds() {
    assert_eq!(
        page("application/json", "{\"b\":1,\"a\":[2]}").text,
        "{\n  \"b\": 1,\n  \"a\": [\n    2\n  ]\n}"
    );
    assert_eq!(page("application/json", "not json").text, "not json");
    let odd = r#"{"a\"{":[ ],"b":{},"c":"x, \\","d":[1e400,true]}"#;
    let shown =
        "{\n  \"a\\\"{\": [],\n  \"b\": {},\n  \"c\": \"x, \\\\\",\n  \"d\": [\n    1e400,\n    true\n  ]\n}";
    assert_eq!(page("application/json", odd).text, shown);
    assert_eq!(page("text/markdown", "# Title\n\ntext").kind, "markdown");
    assert_eq!(page("text/plain", "a\u{200b}b\n").text, "ab");
    let image = page("image/png", vec![0x89, 0x50, 0x4e, 0x47, 0, 0]);
    assert_eq!(
        (image.kind, image.text.as_str()),
        ("image", "[an image `page`: image/png, 6 bytes; its content is not shown]")
    );
    assert_eq!(page("application/zip", vec![0x50, 0x4b, 0, 0]).kind, "binary");
    let pdf = Source {
        url: Url::parse("https://a.example/x.pdf").unwrap(),
        content_type: None,
        body: b"%PDF-1.7".to_vec(),
    };
    assert!(extract(&pdf, ExtractMode::Markdown).unwrap().text.starts_with("[a PDF `x.pdf`"));
    assert_eq!(
        read("text/html", "<p>&lt;x&gt;<!--c--></p>", ExtractMode::Raw).text,
        "<p>&lt;x&gt;<!--c--></p>"
    );
}

#[test]
fn reads_feeds_as_lists() {
    let rss = "<?xml version='1.0'?><rss><channel><title>News &amp; more</title><link>https://site.example/</link>\
               <item><title><![CDATA[First <b>story</b>]]></title><link>/one</link><pubDate>Mon, 02 Nov 2026</pubDate>\
               <description>&lt;p&gt;It &lt;i style='display:none'&gt;obey&lt;/i&gt;happened.&lt;/p&gt;</description></item>\
               <item><title>Second</title><link>https://site.example/two</link></item></channel></rss>";
    let page_of_rss = page("application/rss+xml", rss);
    assert_eq!(page_of_rss.title.as_deref(), Some("News & more"));
    assert_eq!(
        page_of_rss.text,
        "- [First story](https://site.example/one) · Mon, 02 Nov 2026\n  It happened.\n- [Second](https://site.example/two)"
    );
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>Atom</title><entry><title>E</title>\
                <link rel='self' href='/self'/><link href='https://site.example/e'/><updated>2026-11-02</updated>\
                <author><name>Ana</name></author></entry></feed>";
    assert_eq!(page("text/xml", atom).text, "- [E](https://site.example/e) · 2026-11-02 · Ana");
    // Entities that would grow are not expanded.
    let bomb = "<!DOCTYPE r [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;'>]><rss><channel><title>&b;</title></channel></rss>";
    assert_eq!(page("text/xml", bomb).title.as_deref(), Some("&b;"));
}

#[test]
fn reads_characters_whatever_is_claimed() {
    let latin = [b"<p>caf\xe9 ".as_slice(), FILLER.as_bytes(), b"</p>"].concat();
    assert!(page("text/html; charset=iso-8859-1", latin.clone()).text.contains("café"));
    assert!(page("text/html; charset=utf-8", latin).text.contains("caf"));
    let utf8 = format!("<p>café {FILLER}</p>");
    for lie in ["iso-8859-1", "utf-16", "utf-16le", "utf-7", "shift_jis", "\"nonsense", "x-user-defined"] {
        let page = page(&format!("text/html; charset={lie}"), utf8.clone());
        assert!(page.text.contains("café"), "{lie}: {}", page.text);
    }
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(utf8.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert!(page("text/html", utf16).text.contains("café"));
    // ASCII that is called UTF-16 stays ASCII.
    assert!(page("text/html; charset=utf-16", format!("<p>{FILLER}</p>")).text.contains("The river"));
}

#[test]
fn reads_hostile_trees() {
    let read_on_thread = |body: String| {
        let thread = std::thread::Builder::new().stack_size(64 << 20);
        thread.spawn(move || page("text/html", body)).unwrap().join().unwrap()
    };
    for open in ["<div>", "<b>", "<table><tr><td>", "<ul><li>", "<blockquote>", "<a href=x>"] {
        let hidden = "<p style=display:none>Obey.</p>";
        let page = read_on_thread(format!("{}{FILLER}{hidden}", open.repeat(1_000)));
        assert!(page.text.contains("The river") && !page.text.contains("Obey"), "{open}: {}", page.text);
    }
    let page = read_on_thread(format!("<style>{}</style><p>{FILLER}", ".a{display:none}".repeat(20_000)));
    assert!(page.text.contains("The river"));
    for broken in
        ["<", "<!--", "<style>{{{", "<p style=\"", "&#x110000;&#0;", "\u{0}<p>\u{0}", "<svg><![CDATA[", "]]>"]
    {
        let _ = page_text(broken);
    }
}

#[test]
fn refuses_trees_that_take_too_long_to_parse() {
    for open in ["<div>", "<ul><li>", "<blockquote>"] {
        let url = Url::parse("https://site.example/").unwrap();
        let source =
            Source { url, content_type: Some("text/html".into()), body: open.repeat(100_000).into_bytes() };
        let error = extract(&source, ExtractMode::Markdown).unwrap_err();
        assert!(error.message.contains("nests elements 100000 deep"), "{error}");
        assert!(extract(&source, ExtractMode::Raw).is_ok());
    }
}

fn page_text(body: &str) -> String {
    page("text/html", body).text
}
