//! Locations as metadata spells them, and the paths that object stores want.
//!
//! A location is not a URL: as in Hadoop, `file:/a%20b` is a file with a percent sign in its name. So nothing is decoded here, and
//! nothing may be encoded behind here either: only `Path::parse` keeps a name as it is.

use object_store::path::Path;

use crate::error::{Error, Result};

/// Returns the path of a location in the store of local files.
///
/// # Errors
/// Another scheme, a host, a relative path, or characters that no path may have.
pub(super) fn local_path(location: &str) -> Result<Path> {
    let path = match scheme(location) {
        None => location,
        Some(scheme) if scheme.eq_ignore_ascii_case("file") => {
            let rest = &location[scheme.len() + 1..];
            match rest.strip_prefix("//") {
                Some(path) if !path.starts_with('/') => {
                    return Err(Error::validation(format!("location '{location}' names a host"))
                        .hint("A local file has none: write file:///folder/file."));
                }
                Some(path) => path,
                None => rest,
            }
        }
        Some(scheme) => {
            return Err(Error::unsupported(format!(
                "location '{location}' cannot be used: scheme '{scheme}' is not supported yet"
            ))
            .hint("Only local files can be read and written: '/folder' or 'file:///folder'."));
        }
    };
    if !path.starts_with('/') {
        return Err(Error::validation(format!("location '{location}' is not absolute"))
            .hint("Write the whole path, for example file:///warehouse."));
    }
    Path::parse(normalised(path).join("/"))
        .map_err(|error| Error::validation(format!("'{location}' is no location of a file")).caused_by(error))
}

/// Returns the scheme; a path has none even if there is a colon in it.
fn scheme(location: &str) -> Option<&str> {
    let (scheme, _) = location.split_once(':')?;
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(letters)).then_some(scheme)
}

/// Returns the names of a path, without those that mean no folder, the present one or the one above.
fn normalised(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn every_spelling_of_a_local_file_is_the_same_path() {
        for location in ["/a/b", "file:/a/b", "file:///a/b", "FILE:///a//b/", "/a/./c/../b", "/../a/b"] {
            assert_eq!(local_path(location).unwrap().as_ref(), "a/b", "{location}");
        }
    }

    #[test]
    fn nothing_in_a_name_is_decoded_or_encoded() {
        for name in ["a b", "a%20b", "k=v", "a:b", "ä漢😀", "a#b", "a?b", "[a]{b}", "a\\b", "~`^|<>\"*", "%"]
        {
            assert_eq!(local_path(&format!("file:/x/{name}/f")).unwrap().as_ref(), format!("x/{name}/f"));
        }
    }

    #[test]
    fn what_is_no_local_file_is_refused_by_name() {
        let refusal = |location| local_path(location).unwrap_err();
        let error = refusal("s3://bucket/x");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("scheme 's3' is not supported yet"), "{error}");
        assert!(error.hint_text().is_some());
        assert!(refusal("file://host/x").message().contains("names a host"));
        assert!(refusal("warehouse/x").message().contains("is not absolute"));
        assert!(refusal("file:warehouse").message().contains("is not absolute"));
        assert!(refusal("/a\0b").message().contains("no location"));
    }
}
