//! The rules of `src/ARCHITECTURE.md` that a machine can check: layers, headers, sizes, no forgotten test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer and what it may use; a layer may always use itself.
const LAYERS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("changelog", &["error"]),
    ("schema", &["error"]),
    ("options", &["error"]),
    ("sql", &["error", "schema"]),
    ("catalog", &["error", "schema", "options"]),
    ("format", &["error", "schema", "changelog", "options"]),
    ("function", &["error", "schema"]),
    ("state", &["error"]),
    ("connector", &["error", "schema", "changelog", "options", "catalog", "format", "state"]),
    (
        "plan",
        &["error", "schema", "changelog", "options", "sql", "catalog", "format", "function", "connector"],
    ),
    ("runtime", &["error", "schema", "changelog", "options", "function", "state", "connector", "plan"]),
    (
        "session",
        &[
            "error",
            "schema",
            "changelog",
            "options",
            "sql",
            "catalog",
            "format",
            "function",
            "connector",
            "plan",
            "runtime",
            "state",
        ],
    ),
    ("shell", &["error", "schema", "changelog", "options", "sql", "session"]),
];

/// The longest a file may be, tests included.
const LINES_MAX: usize = 800;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn files_below(folder: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    rust_files(&root().join(folder), &mut found);
    found.sort();
    found.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// Returns the code of a file: without comments and without the items that are only there for tests, which may use any layer.
fn code_of(text: &str) -> String {
    let mut parts = text.split("#[cfg(test)]");
    let mut code = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // An item ends with a semicolon, or with the brace that closes its first one.
        let mut depth = 0;
        let end = part.find(|character| {
            depth += i32::from(character == '{') - i32::from(character == '}');
            depth == 0 && (character == ';' || character == '}')
        });
        code.push_str(end.map_or("", |end| &part[end + 1..]));
    }
    code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the layers that code names: `crate::layer::…` and the braces of `use crate::{layer::…, …}`.
fn layers_used(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let group = group.split('}').next().unwrap_or_default();
            used.extend(
                group.split(',').filter_map(|part| part.trim().split("::").next()).map(str::to_owned),
            );
        } else {
            used.insert(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    used.retain(|name| !name.is_empty());
    used
}

#[test]
fn a_layer_uses_only_layers_above_it() {
    let mut wrong = Vec::new();
    for (path, text) in files_below("src") {
        let inside = path.strip_prefix(root().join("src")).unwrap();
        let layer = inside.components().next().unwrap().as_os_str().to_string_lossy().replace(".rs", "");
        if layer == "lib" || layer == "main" {
            continue;
        }
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
            wrong.push(format!("{}: '{layer}' is no layer", inside.display()));
            continue;
        };
        for used in layers_used(&code_of(&text)) {
            let known = LAYERS.iter().any(|(name, _)| *name == used);
            if known && used != layer && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}: {layer} may not use {used}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for_and_is_short() {
    let mut wrong = Vec::new();
    for (path, text) in files_below("src").into_iter().chain(files_below("tests")) {
        if !text.starts_with("//!") {
            wrong.push(format!("{}: does not start with //!", path.display()));
        }
        if text.lines().count() > LINES_MAX {
            wrong.push(format!("{}: {} lines, {LINES_MAX} at most", path.display(), text.lines().count()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_is_a_drawer() {
    let drawers = ["utils", "util", "common", "helpers", "helper", "misc", "types", "impl"];
    let wrong: Vec<String> = files_below("src")
        .into_iter()
        .filter(|(path, _)| drawers.contains(&path.file_stem().unwrap().to_string_lossy().as_ref()))
        .map(|(path, _)| path.display().to_string())
        .collect();
    assert!(wrong.is_empty(), "name files after their main type: {}", wrong.join(", "));
}

#[test]
fn a_connector_is_named_only_in_its_own_files_and_in_the_list() {
    let connectors = ["filesystem", "datagen", "print", "blackhole", "values", "iceberg", "postgres"];
    let mut wrong = Vec::new();
    for (path, text) in files_below("src") {
        let inside = path.strip_prefix(root().join("src")).unwrap().display().to_string();
        if inside.starts_with("connector/") {
            continue;
        }
        let code = code_of(&text);
        for connector in connectors {
            if code.contains(&format!("connector::{connector}::")) {
                wrong.push(format!("{inside}: names connector {connector}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_test_file_is_forgotten() {
    let mut wrong = Vec::new();
    for (path, _) in files_below("tests") {
        let inside = path.strip_prefix(root().join("tests")).unwrap().to_path_buf();
        if inside.starts_with("fuzz") || inside == Path::new("main.rs") {
            continue;
        }
        let stem = inside.file_stem().unwrap().to_string_lossy().into_owned();
        let folder = inside.parent().unwrap();
        let (declaring, name) = if stem == "mod" {
            (
                folder.parent().unwrap().to_path_buf(),
                folder.file_name().unwrap().to_string_lossy().into_owned(),
            )
        } else {
            (folder.to_path_buf(), stem)
        };
        let declaring = if declaring.as_os_str().is_empty() {
            PathBuf::from("main.rs")
        } else {
            declaring.join("mod.rs")
        };
        let text = fs::read_to_string(root().join("tests").join(&declaring)).unwrap_or_default();
        if !text.lines().any(|line| line.trim().ends_with(&format!("mod {name};"))) {
            wrong.push(format!("{}: not declared in {}", inside.display(), declaring.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_top_level_is_what_it_is_meant_to_be() {
    let expected = ["Cargo.lock", "Cargo.toml", "README.md", "scripts", "sql", "src", "tests"];
    let mut found: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && name != "target" && name != "proptest-regressions")
        .collect();
    found.sort();
    assert_eq!(found, expected);
}
