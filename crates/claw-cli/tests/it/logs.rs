//! The log of a server: no secret in it, as text and as JSON.

use std::fs::File;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

/// A value that looks like nothing: only a process that knows it hides it.
const SECRET: &str = "correct-horse-battery-staple";

/// The log of a gateway whose configuration file is named after a secret and then gone, which is an error with that name.
fn logged(format: &str) -> String {
    let home = Home::new();
    let (script, log) = (home.write("script.toml", ECHO), home.path().join("log"));
    let config = home.write(&format!("{SECRET}.toml"), "[scrub]\nvalues_from_env = [\"WIFI_WORDS\"]\n");
    let mut command = home.process(&["--config", config.to_str().unwrap()]);
    command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--script"]).arg(script);
    command.env("WIFI_WORDS", SECRET).env("CLAWSMITH_LOG_FORMAT", format);
    let gateway = Gateway::spawn(&home, command.stderr(File::create(&log).unwrap()));
    let deadline = Instant::now() + Duration::from_secs(60);
    for look in 0.. {
        // The file is gone, then broken: whichever comes after the gateway has begun to watch it is an error.
        match look % 200 {
            0 => std::fs::remove_file(&config).unwrap(),
            100 => drop(home.write(&format!("{SECRET}.toml"), "[scrub\n")),
            _ => {}
        }
        let text = std::fs::read_to_string(&log).unwrap();
        if text.contains("was not reloaded") && text.ends_with('\n') {
            drop(gateway);
            return text;
        }
        assert!(Instant::now() < deadline, "{text}");
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the loop ends with its deadline")
}

#[test]
fn a_known_secret_in_an_error_is_not_in_the_log() {
    let text = logged("text");
    assert!(!text.contains(SECRET) && text.contains("REDACTED"), "{text}");
    let json = logged("json");
    assert!(!json.contains(SECRET), "{json}");
    // The notice that there is no API key yet is for the person who starts it, and no line of the log.
    let logged = json.lines().filter(|line| !line.starts_with("there is no API key"));
    let lines: Vec<Value> = logged.map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed = lines.iter().find(|line| line["message"].to_string().contains("was not reloaded")).unwrap();
    assert_eq!(failed["level"], "ERROR");
    assert!(failed["time"].as_str().unwrap().ends_with('Z'), "{failed}");
    assert!(failed["fields"]["file"].as_str().unwrap().contains("REDACTED"), "{failed}");
}

#[test]
fn a_format_that_does_not_exist_is_said() {
    let home = Home::new();
    let variables = [("CLAWSMITH_LOG", "info"), ("CLAWSMITH_LOG_FORMAT", "xml")];
    let ran = home.run_with(&variables, &["tools", "list"]);
    assert!(ran.code == 0 && ran.stderr.contains("use `text` or `json`"), "{}", ran.shown());
}
