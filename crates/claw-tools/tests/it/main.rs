//! The specs of every built-in tool in every dialect, as snapshots.

use claw_schema::dialect::Dialect;

#[test]
fn every_tool_in_every_dialect() {
    for builtin in claw_tools::builtin() {
        let tool = (builtin.make)();
        let mut page = String::new();
        for dialect in Dialect::ALL {
            let json = serde_json::to_string_pretty(&dialect.tool(tool.spec())).unwrap();
            page.push_str(&format!("{dialect:?}\n{json}\n\n"));
        }
        insta::assert_snapshot!(builtin.meta.name.as_str(), page.trim_end());
    }
}
