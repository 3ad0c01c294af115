use serde_json::{Value, json};

use super::*;
