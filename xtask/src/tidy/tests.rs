//! The real tree, under every check.

use super::{Finding, Tree, dependencies, generate, map, reexports, registered, road, schemas, style};
use crate::{builtin, tree};

#[track_caller]
fn check_tree(check: impl Fn(&Tree) -> Vec<Finding>) {
    let tree = Tree::read(&tree::root()).unwrap();
    assert!(tree.rust().count() > 20, "the tree was not found");
    let findings: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn dependencies_point_down() {
    check_tree(|tree| dependencies::check(tree).unwrap());
}

#[test]
fn the_map_is_true() {
    check_tree(map::check);
}

#[test]
fn embedders_can_name_what_public_types_hold() {
    check_tree(reexports::check);
}

#[test]
fn there_is_one_road() {
    check_tree(road::check);
}

#[test]
fn every_tool_is_registered() {
    check_tree(registered::check);
}

#[test]
fn schema_roots_are_plain_objects() {
    check_tree(|_| schemas::check(&builtin::all()));
}

#[test]
fn the_style_is_kept() {
    check_tree(style::check);
}

#[test]
fn generated_files_are_fresh() {
    check_tree(|tree| generate::stale(tree).unwrap());
}
