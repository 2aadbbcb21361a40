//! Names of files and directories.

use std::path::Path;

use super::Completion;

/// Returns what the last part of a path may become; directories end with a slash.
pub(super) fn complete_path(prefix: &str) -> Vec<Completion> {
    let (scheme, path) = match prefix.strip_prefix("file://") {
        Some(path) => ("file://", path),
        None => ("", prefix),
    };
    let (directory, name) = path.rsplit_once('/').map_or(("", path), |(directory, name)| (directory, name));
    let has_directory = path.contains('/');
    let listed = match (has_directory, directory) {
        (false, _) => Path::new("."),
        (true, "") => Path::new("/"),
        (true, directory) => Path::new(directory),
    };
    let Ok(entries) = std::fs::read_dir(listed) else { return Vec::new() };
    let mut found: Vec<Completion> = entries
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let is_hidden = file.starts_with('.') && !name.starts_with('.');
            if is_hidden || !file.starts_with(name) {
                return None;
            }
            let slash = if entry.path().is_dir() { "/" } else { "" };
            let before = if has_directory { format!("{scheme}{directory}/") } else { scheme.to_owned() };
            Some(Completion {
                display: format!("{file}{slash}"),
                replacement: format!("{before}{file}{slash}"),
            })
        })
        .collect();
    found.sort_by(|left, right| left.display.cmp(&right.display));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_end_with_a_slash_and_hidden_files_wait_for_their_dot() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("orders")).unwrap();
        std::fs::write(dir.path().join("orders.csv"), "").unwrap();
        std::fs::write(dir.path().join(".hidden"), "").unwrap();
        let root = dir.path().display();
        let found: Vec<String> =
            complete_path(&format!("file://{root}/o")).into_iter().map(|found| found.replacement).collect();
        assert_eq!(found, [format!("file://{root}/orders.csv"), format!("file://{root}/orders/")]);
        assert_eq!(complete_path(&format!("{root}/")).len(), 2);
        assert_eq!(complete_path(&format!("{root}/.h")).len(), 1);
    }
}
