//! TLS to Postgres, as its own client does it: `prefer` and `require` encrypt and trust any server, `verify-ca` wants its certificate
//! signed by somebody known, `verify-full` also wants its name.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

/// Where systems keep the certificates that they trust.
const SYSTEM_CERTIFICATES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Whom to trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any server.
    Anybody,
    /// One whose certificate is signed by somebody known.
    Authority,
    /// One whose certificate also has its name.
    AuthorityAndName,
}

/// How to encrypt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TlsSettings {
    pub(super) trust: Trust,
    /// The file with the certificates of who is known; those of the system if None.
    pub(super) root_certificate: Option<PathBuf>,
}

/// Returns what encrypts connections.
///
/// # Errors
/// The certificates that are needed cannot be read.
pub(super) fn connector(settings: &TlsSettings) -> Result<MakeRustlsConnect> {
    // Never the process's default: a library would have to be first to set it.
    let provider = Arc::new(ring::default_provider());
    let broken = |error| Error::internal("TLS cannot be set up").caused_by(error);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(broken)?;
    let config = match settings.trust {
        Trust::AuthorityAndName => {
            builder.with_root_certificates(known_authorities(settings)?).with_no_client_auth()
        }
        Trust::Authority | Trust::Anybody => {
            let authority = match settings.trust {
                Trust::Anybody => None,
                _ => Some(authority_verifier(settings, &provider)?),
            };
            let verifier = Arc::new(NamelessVerifier { authority, provider });
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
    let system = || SYSTEM_CERTIFICATES.iter().map(PathBuf::from).find(|path| path.exists());
    let path = settings.root_certificate.clone().or_else(system).ok_or_else(|| {
        Error::validation("no certificates are known by which the server could be verified")
            .hint("Name a file with them in the parameter 'sslrootcert' of 'uri'.")
    })?;
    let unreadable = |error: rustls::pki_types::pem::Error| {
        Error::validation(format!("certificates in '{}' cannot be read", path.display()))
            .hint("The parameter 'sslrootcert' of 'uri' names a file in PEM format.")
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
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
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
