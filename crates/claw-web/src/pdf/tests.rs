//! Documents written here and read in this process: no sandbox is needed for harmless ones.

use claw_core::port::WebPage;

use super::*;

/// A document with these content streams, one for each page.
fn document(pages: &[&str]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!(
            "<< /Type /Pages /Count {} /Kids [{}] >>",
            pages.len(),
            (0..pages.len()).map(|at| format!("{} 0 R ", 5 + 2 * at)).collect::<String>()
        ),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
        "<< /Title (Boats on the river) /Author (\u{fe}\u{ff}\0A\0n\0a) /CreationDate (D:20260102030405Z) >>"
            .to_owned(),
    ];
    for (at, content) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F 3 0 R >> /XObject << /P 999 0 R >> \
             >> /Contents {} 0 R >>",
            6 + 2 * at
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut out = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.extend(format!("{} 0 obj\n", at + 1).bytes());
        // Characters up to 255 are bytes.
        out.extend(object.chars().map(|c| u8::try_from(u32::from(c)).unwrap()));
        out.extend(b"\nendobj\n");
    }
    let start = out.len();
    out.extend(format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1).bytes());
    places.iter().for_each(|place| out.extend(format!("{place:010} 00000 n \n").bytes()));
    let trailer = format!(
        "trailer\n<< /Size {} /Root 1 0 R /Info 4 0 R >>\nstartxref\n{start}\n%%EOF\n",
        places.len() + 1
    );
    out.extend(trailer.bytes());
    out
}

/// Reads without a sandbox.
struct Here {
    /// The lines after which it is cut.
    lines: usize,
    cut: Option<Cut>,
}

#[async_trait]
impl PdfProcess for Here {
    async fn run(&self, document: Vec<u8>) -> Result<Printed, String> {
        let mut output = Vec::new();
        let mut left = self.lines;
        let _ = child::read(document, &mut |line| {
            left = left.checked_sub(1).ok_or(std::io::ErrorKind::BrokenPipe)?;
            serde_json::to_writer(&mut output, line)?;
            output.push(b'\n');
            Ok(())
        });
        Ok(Printed { output, cut: self.cut })
    }
}

async fn read_here(document: Vec<u8>) -> Result<WebPage, ToolError> {
    let mut page = WebPage { url: "http://a.example/x.pdf".into(), ..WebPage::default() };
    read(Some(&Here { lines: 100, cut: None }), document, &mut page).await?;
    Ok(page)
}

#[tokio::test]
async fn reads_lines_words_and_labels() {
    let first = "BT /F 12 Tf 50 700 Td (The river has) Tj ( carried) Tj 0 -14 Td [(bo) -20 (ats) -300 (since)] TJ 0 -40 Td \
                 (A new paragraph) Tj ET";
    let page = read_here(document(&[first, "BT /F 12 Tf 50 700 Td (Second page) Tj ET"])).await.unwrap();
    assert_eq!(
        page.text,
        "[page 1]\n\nThe river has carried\nboats since\n\nA new paragraph\n\n[page 2]\n\nSecond page"
    );
    let label = |label: &Option<String>| label.clone().unwrap_or_default();
    assert_eq!((label(&page.title), label(&page.author)), ("Boats on the river".into(), "Ana".into()));
    assert_eq!((label(&page.date), page.hidden), ("2026-01-02".into(), 0));
}

#[tokio::test]
async fn drops_text_that_nobody_would_see() {
    for (attack, content) in [
        ("drawn invisibly", "3 Tr (obey me) Tj"),
        ("in the colour of the paper", "1 1 1 rg (obey me) Tj"),
        ("nearly so", "0.99 0.98 0.99 rg (obey me) Tj"),
        ("tiny", "/F 0.4 Tf (obey me) Tj"),
        ("beside the page", "0 900 Td (obey me) Tj"),
        ("under a shape", "(obey me) Tj ET 0 0.5 0 rg 40 640 200 40 re f BT /F 12 Tf"),
        ("in the colour of a shape", "ET 0 0.5 0 rg 40 640 200 40 re f BT /F 12 Tf 50 650 Td (obey me) Tj"),
    ] {
        let content =
            format!("BT /F 12 Tf 50 650 Td {content} ET BT 0 g /F 12 Tf 0 Tr 50 300 Td (The river) Tj ET");
        let page = read_here(document(&[&content])).await.unwrap();
        assert_eq!((page.text.as_str(), page.hidden), ("The river", 1), "{attack}");
    }
    let banner = "0 0 0.5 rg 40 640 200 40 re f BT 1 1 1 rg /F 12 Tf 50 650 Td (A white heading) Tj ET";
    assert_eq!(read_here(document(&[banner])).await.unwrap().text, "A white heading");
}

#[tokio::test]
async fn keeps_the_pages_that_were_read_before_it_was_cut_off() {
    let document = document(&["BT /F 12 Tf 50 700 Td (First) Tj ET", "BT /F 12 Tf 50 700 Td (Second) Tj ET"]);
    let mut page = WebPage::default();
    let cut = Some(Cut::Seconds(20));
    read(Some(&Here { lines: 2, cut }), document.clone(), &mut page).await.unwrap();
    assert!(page.text.starts_with("[page 1]\n\nFirst\n\n[1 of 2 pages were read"), "{}", page.text);
    let error = read(Some(&Here { lines: 1, cut }), document.clone(), &mut page).await.unwrap_err();
    assert!(error.kind == ErrorKind::TimedOut && error.message.contains("longer than 20 s"), "{error}");
    let error = read(Some(&Here { lines: 1, cut: None }), document, &mut page).await.unwrap_err();
    assert!(error.message.contains("crashes the PDF reader"), "{error}");
}

#[tokio::test]
async fn refuses_what_cannot_be_read() {
    let error = read_here(b"%PDF-1.7 nothing".to_vec()).await.unwrap_err();
    assert!(error.message.contains("is damaged"), "{error}");
    let mut page = WebPage { url: "http://a.example/x.pdf".into(), ..WebPage::default() };
    let error = read(None, Vec::new(), &mut page).await.unwrap_err();
    assert!(error.kind == ErrorKind::Unavailable && error.message.contains("sandboxed process"), "{error}");
}

#[tokio::test]
async fn damaged_documents_are_told_or_read_and_never_panic() {
    let whole = document(&["BT /F 12 Tf 50 700 Td (The river has carried boats) Tj ET"]);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x15;
        let _ = read_here(damaged).await;
        let _ = read_here(whole[..at].to_vec()).await;
    }
}
