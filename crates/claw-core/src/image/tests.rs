use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

#[track_caller]
fn check(mime: &str, bytes: &[u8], found: Option<&str>) {
    let refused = check_type(mime, bytes).err().map(|wrong| wrong.found);
    assert_eq!(refused, found, "{mime}");
}

#[test]
fn an_image_is_what_its_bytes_say() {
    check("image/png", PNG, None);
    check("image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0", None);
    check("image/gif", b"GIF89a\x01\0\x01\0\x80\0\0", None);
    check("image/webp", b"RIFF\x24\0\0\0WEBPVP8 ", None);
    check("image/jpeg", PNG, Some("image/png"));
    check("IMAGE/PNG", PNG, Some("image/png"));
    check("image/bmp", b"BM\x46\0\0\0\0\0", Some("image/bmp"));
    check("image/png", b"\0\x01\x02", Some("application/octet-stream"));
}

#[test]
fn text_is_no_image_whatever_it_begins_with() {
    check("image/png", b"password: hunter2", Some("text/plain"));
    check("image/gif", b"GIF89a password: hunter2", Some("text/plain"));
    check("image/svg+xml", b"<svg/>", Some("text/plain"));
    check("image/png", b"", Some("text/plain"));
    check("text/plain", b"password: hunter2", None);
    check("application/pdf", b"%PDF-1.7", None);
    assert!(check_image("application/pdf", b"%PDF-1.7").is_err());
    assert!(check_image("text/plain", b"password: hunter2").is_err());
}

#[test]
fn the_bytes_are_never_written() {
    let image = Image::new("image/png", PNG);
    let written = serde_json::to_value(&image).unwrap();
    let names: Vec<&String> = written.as_object().unwrap().keys().collect();
    assert_eq!(names, ["bytes", "digest", "mime"]);
    let read: Image = serde_json::from_value(written).unwrap();
    assert_eq!(read, image);
    assert!(read.data().is_none());
    assert!(!format!("{image:?}").contains("IHDR"));
}

#[test]
fn only_the_named_bytes_can_be_attached() {
    let mut image = Image::new("image/png", PNG);
    image.unload();
    assert!(!image.load(Arc::from(&b"others"[..])) && image.data().is_none());
    assert!(image.load(Arc::from(PNG)));
    assert_eq!(image.data().unwrap()[..], *PNG);
}
