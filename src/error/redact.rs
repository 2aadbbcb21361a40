//! Which option names hold secrets, and where their values stand in a text, so that no excerpt shows one.

use super::Span;

/// What a secret looks like wherever it is printed.
pub const REDACTED: &str = "******";

/// Parts of a key that make its value a secret: Flink's list, the spellings that its connectors use, and what is left of them where a
/// letter is missing: an error about the key shows its line.
const SENSITIVE_PARTS: &[&str] = &[
    "passw",
    "pasw",
    "passo",
    "pwd",
    "secret",
    "fs.azure.account.key",
    "apikey",
    "api-key",
    "api.key",
    "auth-params",
    "service-key",
    "token",
    "basic-auth",
    "jaas.config",
    "http-headers",
    "access-key",
    "access.key",
    "credential",
    "passphrase",
    "private-key",
    "private_key",
    "private.key",
    "authorization",
];

/// Returns whether the value of an option must never be printed.
pub fn is_sensitive_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SENSITIVE_PARTS.iter().any(|part| key.contains(part))
}

/// Returns the value, or stars where its key says that it is a secret, or where it is a URL with one in it.
pub fn redact_value<'a>(key: &str, value: &'a str) -> &'a str {
    if is_sensitive_key(key) || holds_password(value) { REDACTED } else { value }
}

/// Returns whether a value carries a password: as a URL's user, `postgresql://user:…@host`, or as a parameter, as in
/// `jdbc:sqlite:/x.db?password=…` and `host=h password=…`.
fn holds_password(value: &str) -> bool {
    let user = value.split_once("://").and_then(|(_, rest)| {
        let (authority, _) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        authority.rsplit_once('@').map(|(user, _)| user)
    });
    let in_user =
        user.and_then(|user| user.split_once(':')).is_some_and(|(_, password)| !password.is_empty());
    let mut parameters = value
        .split(|character: char| character.is_whitespace() || "?&;,#".contains(character))
        .filter_map(|parameter| parameter.split_once('='));
    in_user || parameters.any(|(name, value)| is_sensitive_key(name) && !value.is_empty())
}

/// Returns SQL text with its secrets starred out.
pub fn redact_statement(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for span in secret_spans(text) {
        shown.push_str(&text[copied..span.start]);
        shown.push_str(REDACTED);
        copied = span.end;
    }
    shown + &text[copied..]
}

/// Stars out in a message what is a secret in the SQL text that it is about. One that stands there in clear as well, such as the name of
/// the user, stays: without the name the message would say nothing but that the two are equal. But where the message is about the
/// secret itself, at whose place it points, the word would be told as such.
pub(super) fn redact_message(message: String, source: &str, place: Option<Span>) -> String {
    // A shorter word is likely to be part of other words; nobody's secret is that short.
    const SECRET_BYTES_MIN: usize = 4;
    let spans = secret_spans(source);
    let is_secret = |at: usize| spans.iter().any(|secret| secret.start <= at && at < secret.end);
    let is_about_secret = place.is_some_and(|place| is_secret(place.start) || is_secret(place.start + 1));
    spans
        .iter()
        .map(|span| &source[span.start..span.end])
        .filter(|secret| secret.len() >= SECRET_BYTES_MIN && !secret.starts_with("${"))
        .filter(|secret| is_about_secret || !stands_in_clear(source, secret, is_secret))
        .fold(message, |message, secret| message.replace(secret, REDACTED))
}

/// Returns whether a text stands as a word of its own where no secret is.
fn stands_in_clear(source: &str, text: &str, is_secret: impl Fn(usize) -> bool) -> bool {
    let is_part = |character: Option<char>| character.is_some_and(|it| it.is_alphanumeric() || it == '_');
    source.match_indices(text).any(|(at, _)| {
        let (before, behind) = (&source[..at], &source[at + text.len()..]);
        !is_part(before.chars().next_back()) && !is_part(behind.chars().next()) && !is_secret(at)
    })
}

/// Finds the values of secrets in SQL text: in `'key' = 'value'` and in `SET key = value`, quotes left out.
pub(super) fn secret_spans(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let mut spans = Vec::new();
    let mut key: Option<Span> = None;
    let mut after_equals = false;
    let mut at = 0;
    while at < bytes.len() {
        let token = match bytes[at] {
            // Double quotes are no quotes in Flink, and who takes them for some has a secret between them all the same.
            b'\'' | b'"' => {
                let (inner, end) = string_literal(bytes, at);
                at = end;
                inner
            }
            byte if byte.is_ascii_alphanumeric() || byte >= 0x80 || b"_.-$".contains(&byte) => {
                let start = at;
                while at < bytes.len() && !bytes[at].is_ascii_whitespace() && !b"'=,();".contains(&bytes[at])
                {
                    at += 1;
                }
                Span::new(start, at)
            }
            b'=' => {
                after_equals = key.is_some();
                // Named arguments have an arrow.
                at += if bytes.get(at + 1) == Some(&b'>') { 2 } else { 1 };
                continue;
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    (key, after_equals) = (None, false);
                }
                at += 1;
                continue;
            }
        };
        // A literal right behind a key is one whose `=` was forgotten.
        let is_quoted = bytes.get(token.start.wrapping_sub(1)).is_some_and(|byte| b"'\"".contains(byte));
        let is_value = after_equals || is_quoted;
        match key {
            Some(key)
                if is_value
                    && (is_sensitive_key(&text[key.start..key.end])
                        || holds_password(&text[token.start..token.end])) =>
            {
                spans.push(token);
            }
            _ => {}
        }
        (key, after_equals) = if after_equals { (None, false) } else { (Some(token), false) };
    }
    spans
}

/// Returns what stands between the quotes of the literal at `start`, and the offset behind it. A doubled quote is part of it,
/// and an unfinished literal reaches to the end of the text.
fn string_literal(bytes: &[u8], start: usize) -> (Span, usize) {
    let (mut at, quote) = (start + 1, bytes[start]);
    while at < bytes.len() {
        if bytes[at] == quote {
            if bytes.get(at + 1) != Some(&quote) {
                return (Span::new(start + 1, at), at + 1);
            }
            at += 1;
        }
        at += 1;
    }
    (Span::new((start + 1).min(bytes.len()), bytes.len()), bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_keys_are_found_in_options_and_in_set() {
        let text = "CREATE TABLE t (a INT) WITH ('user' = 'u', 'password' = 'it''s', 'x.token'='t');\nSET my.secret = s3;";
        let found: Vec<&str> = secret_spans(text).iter().map(|span| &text[span.start..span.end]).collect();
        assert_eq!(found, ["it''s", "t", "s3"]);
        for (key, value) in
            [("passwrd", "'x1'"), ("pasword", "'x1'"), ("pwd", "'x1'"), ("private_key", "\"x1\"")]
        {
            let shown = redact_statement(&format!("WITH ('{key}' = {value})"));
            assert!(!shown.contains("x1") && shown.contains(key), "{shown}");
        }
    }

    #[test]
    fn a_secret_is_found_without_its_equals_sign_and_as_an_argument() {
        let text = "SET 'a.secret' 'one'; CALL p(password => 'two'); SELECT token 'x'";
        assert_eq!(
            redact_statement(text),
            "SET 'a.secret' '******'; CALL p(password => '******'); SELECT token '******'"
        );
        assert_eq!(
            redact_message("Encountered 'hunter2'".to_owned(), "SET 'password' 'hunter2'", None),
            "Encountered '******'"
        );
    }

    #[test]
    fn a_name_that_is_also_the_password_stays_in_messages() {
        let source = "WITH ('username' = 'shop', 'password' = 'shop', 'database-name' = 'shop_db')";
        let message = || "user 'shop' of 'shop_db' may not".to_owned();
        assert_eq!(redact_message(message(), source, None), message());
        let at = source.rfind("'shop',").unwrap();
        let about =
            |start| redact_message("is 'shop' wrong?".to_owned(), source, Some(Span::new(start, at + 6)));
        assert_eq!([about(at), about(at + 1)], ["is '******' wrong?"; 2]);
        let source = "WITH ('username' = 'shopkeeper', 'password' = 'shop')";
        assert_eq!(redact_message("is 'shop' wrong?".to_owned(), source, None), "is '******' wrong?");
    }

    #[test]
    fn a_url_with_a_password_is_a_secret() {
        for url in [
            "postgresql://me:hidden@host/db",
            "jdbc:postgresql://host/db?user=me&password=hidden",
            "jdbc:sqlserver://host;user=me;password=hidden",
            "https://host/x?access_token=hidden#y",
            "jdbc:sqlite:/x.db?password=hidden",
            "jdbc:sqlite:/x.db?cache=shared&password=hidden",
            "host=h user=me password=hidden",
        ] {
            assert_eq!(redact_value("uri", url), REDACTED, "{url}");
            assert_eq!(redact_statement(&format!("WITH ('uri' = '{url}')")), "WITH ('uri' = '******')");
        }
        for url in
            ["jdbc:postgresql://host:5432/db?user=me", "file:///a@b:c", "a:b@c", "http://me@host/x?y=z"]
        {
            assert_eq!(redact_value("uri", url), url);
        }
    }

    #[test]
    fn a_header_that_authorizes_is_a_secret() {
        assert_eq!(
            redact_statement("WITH ('header.Authorization' = 'Bearer hidden')"),
            "WITH ('header.Authorization' = '******')"
        );
        assert!(!is_sensitive_key("author"));
    }

    #[test]
    fn an_unfinished_secret_is_found_up_to_the_end() {
        let text = "SET 'password' = 'abc\ndef";
        let found: Vec<&str> = secret_spans(text).iter().map(|span| &text[span.start..span.end]).collect();
        assert_eq!(found, ["abc\ndef"]);
    }
}
