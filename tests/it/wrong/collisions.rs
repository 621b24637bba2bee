//! Operations that cannot be served together: of two plugins, and of one.

use serde_json::{Value, json};

use super::Floor;
use crate::support::{describing, good, operation};

/// The description of `describes` with these operations.
fn with(operations: Value) -> Vec<u8> {
    let mut description = good("describes");
    description["operations"] = operations;
    describing(&description.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_that_collide_are_told_by_plugin_and_place() {
    let mut floor = Floor::open().await;
    let route = [("/operations/0/rest/path", json!("/api/v1/test/neighbour"))];
    floor
        .check_set(
            &route,
            "plugins `describes` and `neighbour` both serve GET /api/v1/test/neighbour",
        )
        .await;
    let tool = [("/operations/0/tool/name", json!("serve_neighbour"))];
    floor
        .check_set(
            &tool,
            "plugins `describes` and `neighbour` both define the tool `serve_neighbour`",
        )
        .await;

    let both = "plugin `describes`: its operations `first` and `second`";
    let mut second = operation("second", "second");
    second["rest"]["path"] = json!("/api/v1/test/describes");
    let component = with(json!([operation("first", "describes"), second]));
    floor
        .check(
            &component,
            &format!("{both} both serve GET /api/v1/test/describes"),
        )
        .await;
    let mut second = operation("second", "second");
    second["tool"]["name"] = json!("serve_describes");
    let component = with(json!([operation("first", "describes"), second]));
    floor
        .check(
            &component,
            &format!("{both} both define the tool `serve_describes`"),
        )
        .await;
    let component = with(json!([
        operation("first", "describes"),
        operation("first", "second")
    ]));
    floor
        .check(
            &component,
            "plugin `describes`: operation `first` appears more than once",
        )
        .await;

    // Two names for one place in a path.
    let with_parameter = |id: &str, word: &str, name: &str| {
        let mut row = operation(id, word);
        let property = row["input"]["properties"]["colour"].take();
        row["input"]["properties"] = json!({ name: property });
        row["rest"]["path"] = json!(format!("/api/v1/test/describes/{{{name}}}"));
        row["examples"] = json!([]);
        row
    };
    let first = with_parameter("first", "describes", "colour");
    let mut second = with_parameter("second", "second", "shade");
    second["rest"]["method"] = json!("POST");
    let rule = "serve conflicting paths: /api/v1/test/describes/{shade} differs from /api/v1/test/describes/{colour} \
        only in its parameter names";
    floor
        .check(&with(json!([first, second])), &format!("{both} {rule}"))
        .await;
}
