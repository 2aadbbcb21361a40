//! TLS to Postgres, as its own client does it: `prefer` and `require` encrypt and trust any server, `verify-ca` wants its certificate
//! signed by somebody known, `verify-full` also wants its name.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

/// Where systems keep the certificates that they trust.
const SYSTEM_CERTIFICATES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Whether a connection is encrypted, and whom it trusts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// Nothing is encrypted.
    Disable,
    /// Encrypted if the server can; any server is trusted.
    Prefer,
    /// Encrypted; any server is trusted.
    Require,
    /// Encrypted; the server's certificate is signed by somebody known.
    VerifyCa,
    /// Encrypted; the certificate also has the server's name.
    VerifyFull,
}

impl TlsMode {
    /// What `sslmode` may be.
    pub(super) const CHOICES: &str = "disable, prefer, require, verify-ca or verify-full";

    /// Returns the mode that Postgres's own client has this name for.
    pub(super) fn parse(name: &str) -> Option<TlsMode> {
        match name {
            "disable" => Some(TlsMode::Disable),
            // To try without first gains nothing.
            "allow" | "prefer" => Some(TlsMode::Prefer),
            "require" => Some(TlsMode::Require),
            "verify-ca" => Some(TlsMode::VerifyCa),
            "verify-full" => Some(TlsMode::VerifyFull),
            _ => None,
        }
    }

    /// Returns what the client is told; whom it trusts is the connector's business.
    pub(super) fn ssl_mode(self) -> SslMode {
        match self {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        }
    }
}

/// How to encrypt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) mode: TlsMode,
    /// The file with the certificates of who is known; those of the system if None.
    pub(super) root_certificate: Option<PathBuf>,
}

impl TlsSettings {
    /// Returns the file with the certificates of who is known.
    ///
    /// # Errors
    /// None is named, and the system has none.
    pub(super) fn authorities(&self) -> Result<PathBuf> {
        let system = || SYSTEM_CERTIFICATES.iter().map(PathBuf::from).find(|path| path.exists());
        self.root_certificate.clone().or_else(system).ok_or_else(|| {
            Error::validation("no certificates are known by which the server could be verified")
                .hint("Name a file with them in the parameter 'sslrootcert'.")
        })
    }
}

/// A name that a server's certificate has, where it has not the one by which the server was asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct PresentedName(Arc<OnceLock<String>>);

impl PresentedName {
    /// Returns the name, once somebody has connected.
    pub(super) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// Keeps one of the names, which are written as `DnsName("localhost")` and `IpAddress(127.0.0.1)`.
    fn keep(&self, names: &[String]) {
        let plain = names.iter().find_map(|name| {
            let dns = name.strip_prefix("DnsName(\"").and_then(|name| name.strip_suffix("\")"));
            let address = name.strip_prefix("IpAddress(").and_then(|name| name.strip_suffix(')'));
            dns.or(address)
        });
        if let Some(name) = plain {
            // A certificate for all names of a domain is one for any of them.
            drop(self.0.set(name.replacen('*', "any", 1)));
        }
    }
}

/// Returns what encrypts connections.
///
/// # Errors
/// The certificates that are needed cannot be read.
pub(super) fn connector(settings: &TlsSettings) -> Result<MakeRustlsConnect> {
    connector_that_learns(settings, &PresentedName::default())
}

/// Returns what encrypts connections, and learns what a server whose name is not verified is called in its certificate.
///
/// # Errors
/// The certificates that are needed cannot be read.
pub(super) fn connector_that_learns(
    settings: &TlsSettings,
    presented: &PresentedName,
) -> Result<MakeRustlsConnect> {
    // Never the process's default: a library would have to be first to set it.
    let provider = Arc::new(ring::default_provider());
    let broken = |error| Error::internal("TLS cannot be set up").caused_by(error);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(broken)?;
    let config = match settings.mode {
        TlsMode::VerifyFull => {
            builder.with_root_certificates(known_authorities(settings)?).with_no_client_auth()
        }
        mode => {
            let authority = match mode {
                TlsMode::VerifyCa => Some(authority_verifier(settings, &provider)?),
                _ => None,
            };
            let presented = presented.clone();
            let verifier = Arc::new(NamelessVerifier { authority, provider, presented });
            builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn authority_verifier(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>> {
    let roots = Arc::new(known_authorities(settings)?);
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|error| Error::validation("the root certificates cannot be used").caused_by(error))
}

/// Reads the certificates of who is known.
fn known_authorities(settings: &TlsSettings) -> Result<RootCertStore> {
    let path = settings.authorities()?;
    let unreadable = |error: rustls::pki_types::pem::Error| {
        Error::validation(format!("certificates in '{}' cannot be read", path.display()))
            .hint("The parameter 'sslrootcert' names a file in PEM format.")
            .caused_by(error)
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(&path).map_err(unreadable)?;
    let certificates = certificates.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let (added, _) = roots.add_parsable_certificates(certificates);
    if added == 0 {
        return Err(Error::validation(format!("there is no certificate in '{}'", path.display())));
    }
    Ok(roots)
}

/// Verifies a server by its authority or not at all, and never by its name.
#[derive(Debug)]
struct NamelessVerifier {
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
    presented: PresentedName,
}

impl ServerCertVerifier for NamelessVerifier {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else { return Ok(ServerCertVerified::assertion()) };
        match authority.verify_server_cert(server, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => {
                Ok(ServerCertVerified::assertion())
            }
            Err(rustls::Error::InvalidCertificate(CertificateError::NotValidForNameContext {
                presented,
                ..
            })) => {
                self.presented.keep(&presented);
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_a_certificate_has_is_kept() {
        for (names, expected) in [
            (&["DirectoryName", "DnsName(\"db.example.org\")"][..], Some("db.example.org")),
            (&["DnsName(\"*.example.org\")"], Some("any.example.org")),
            (&["IpAddress(127.0.0.1)"], Some("127.0.0.1")),
            (&["UniformResourceIdentifier(\"x:y\")"], None),
            (&[], None),
        ] {
            let presented = PresentedName::default();
            presented.keep(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(presented.get(), expected, "{names:?}");
        }
    }
}
