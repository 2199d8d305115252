//! Data for people: a list of flat objects as a table, an object as lines, anything else as JSON.

use serde_json::{Map, Value};

use super::terminal_text::{json_printable, one_line};

/// A cell is cut at this width.
const CELL_WIDTH_MAX: usize = 60;

pub(super) fn render(data: &Value) -> String {
    match data {
        Value::Array(items) => rows(items).map_or_else(|| json(data), |rows| table(&rows)),
        // A list in an object that holds nothing else of weight, as lists usually come.
        Value::Object(object) => match only_list(object).and_then(rows) {
            Some(rows) => table(&rows) + &lines(object.iter().filter(|(_, value)| !value.is_array())),
            None => lines(object.iter()),
        },
        other => json(other),
    }
}

fn json(data: &Value) -> String {
    json_printable(&format!("{data:#}")) + "\n"
}

fn only_list(object: &Map<String, Value>) -> Option<&[Value]> {
    let mut lists = object.values().filter_map(Value::as_array);
    let list = lists.next()?;
    // An empty list beside texts is one field of many, such as a task without tags.
    let of_weight = list.is_empty() && object.values().any(|value| value.is_string() || value.is_object());
    (lists.next().is_none() && !of_weight).then_some(list.as_slice())
}

/// The items as objects, if they all are.
fn rows(items: &[Value]) -> Option<Vec<&Map<String, Value>>> {
    items.iter().map(Value::as_object).collect()
}

fn table(rows: &[&Map<String, Value>]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for key in rows.iter().flat_map(|row| row.keys()) {
        if !columns.contains(&key.as_str()) {
            columns.push(key);
        }
    }
    let mut grid: Vec<Vec<String>> =
        vec![columns.iter().map(|column| one_line(&column.to_uppercase())).collect()];
    grid.extend(rows.iter().map(|row| columns.iter().map(|column| cell(row.get(*column))).collect()));
    let widths: Vec<usize> = (0..columns.len())
        .map(|column| grid.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in grid {
        let padded: Vec<String> = line
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count())))
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    if rows.is_empty() { "nothing\n".to_owned() } else { text }
}

fn lines<'a>(entries: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let entries: Vec<_> = entries.map(|(key, value)| (one_line(key), value)).collect();
    let width = entries.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    entries
        .iter()
        .map(|(key, value)| {
            let padding = " ".repeat(width - key.chars().count());
            let shown = match value {
                Value::String(text) => one_line(text),
                other => one_line(&other.to_string()),
            };
            format!("{key}{padding}  {shown}\n")
        })
        .collect()
}

fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let text = one_line(&text);
    if text.chars().count() <= CELL_WIDTH_MAX {
        return text;
    }
    text.chars().take(CELL_WIDTH_MAX - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_objects_is_a_table_without_control_characters() {
        let data = json!({"tasks": [{"id": "t1", "title": "é\u{1b}[31m"}, {"id": "t2", "done": true}]});
        assert_eq!(render(&data), "ID  TITLE        DONE\nt1  é\\u{1b}[31m\nt2               true\n");
    }

    #[test]
    fn neither_keys_nor_values_make_further_lines() {
        let (key, value) = ("k\u{1b}[2J\n", "v\u{9b}\n\tx");
        assert_eq!(render(&json!([{key: value}])), "K\\u{1b}[2J\\n\nv\\u{9b}\\n\\tx\n");
        assert_eq!(
            render(&json!({key: value, "list": [value]})),
            "k\\u{1b}[2J\\n  v\\u{9b}\\n\\tx\nlist          [\"v\\u{9b}\\n\\tx\"]\n"
        );
        assert_eq!(render(&json!([{key: value}, 1])).lines().count(), 6);
    }

    #[test]
    fn an_object_is_lines() {
        assert_eq!(render(&json!({"id": "t1", "tags": ["a"]})), "id    t1\ntags  [\"a\"]\n");
        assert_eq!(render(&json!({"id": "t1", "tags": []})), "id    t1\ntags  []\n");
        assert_eq!(render(&json!({"tasks": [], "total": 0})), "nothing\ntotal  0\n");
    }
}
