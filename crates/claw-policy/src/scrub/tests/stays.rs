//! Texts that must stay byte for byte.

use super::check;

#[test]
fn what_is_no_secret() {
    let hex = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    for text in [
        "",
        "plain words",
        // Prose.
        "the token is invalid",
        "password: required",
        "Password: must be at least 8 characters long",
        "Enter your password: ",
        "Enter your password: \nnext line 123456789a",
        "secret: none",
        "wrong password, try again",
        "The secret: never give up",
        "bearer of bad news",
        "Bearer authentication is required",
        "Authorization: Bearer authentication is described below",
        "Authorization: required",
        "key: the first column",
        "Token expired: please log in",
        "keyword: password",
        "passing tests: 1234567890abc",
        r#"{"password": "Enter your password"}"#,
        r#"{"password": "Must contain 8 characters of the alphabet"}"#,
        r#"{"token": "Invalid token"}"#,
        r#"{"password": "required"}"#,
        r#"{"password": "string"}"#,
        r#"{"password": "auth.password.label"}"#,
        r#"{"token": "identifier"}"#,
        r#"{"token": "keyword_async"}"#,
        // Counts and other things with a secret's word in their name.
        r#"{"session_key": "agent:default:cli:direct:me:w-3f9a1c7e"}"#,
        r#"{"sessionKey":"agent:default:cli:direct:me:w-3f9a1c7e"}"#,
        "session_key: agent:default:cli:direct:me:w-3f9a1c7e",
        "max_tokens: 4096",
        "max_tokens=4096123456",
        "\"max_tokens\": 4096,",
        "\"total_tokens\": 12345678,",
        "token_count = 12345678a",
        "tokens: abc12345678",
        "tokenizer: cl100k_base_v2x9",
        "next_page_token: \"abcd1234efgh5678\"",
        "\"nextPageToken\": \"CAUQAA1234567\"",
        "password_file=/run/secrets/db2_password",
        "token_url: https://example.org/oauth2/token",
        "secret_name: my-secret-1a2b3c4d",
        "secretary=jane1234doe",
        "passage: abcd1234efgh",
        "monkey=bananas123",
        "keyboard=qwerty12345",
        "key=abcd1234efgh",
        "\"key\": \"abcd1234efgh\"",
        "PRIMARY_KEY = user_id_column",
        "PRIMARY_KEY=user_id_1a2b3c4",
        "PUBLIC_KEY=abcd1234efgh5678",
        "CACHE_KEY=user:1234:profile9x",
        "pass=3 fail=0",
        "\"pass\": true",
        "PWD=/home/user/project1",
        "OLDPWD=/home/user/project1",
        "VIRTUAL_ENV=/home/user/.venv/project1",
        "DSN=mydsn",
        // Code.
        "let token = lexer.next();",
        "let token = self.tokens[self.position];",
        "const apiKey = process.env.X",
        "const apiKey = process.env.API_KEY_2;",
        "token: AccessToken",
        "token: AccessTokenV2,",
        "token: &'a str,",
        "token: Option<String>,",
        "password: String,",
        "password: string;",
        "password: str | None = None",
        "pub password: SecretString,",
        "def login(user, password=None):",
        "def login(user, password: str = \"\"):",
        "connect(password=password)",
        "connect(password=settings.DB_PASSWORD)",
        "connect(password=self.password, token=token)",
        "api_key = os.environ[\"API_KEY\"]",
        "api_key = os.getenv(\"API_KEY_1\")",
        "password = getpass.getpass(\"Password: \")",
        "secret := viper.GetString(\"secret2\")",
        "if token == \"abcd1234efgh\" {",
        "if password != \"\" {",
        "token::Kind::Ident1234",
        "Token::new(kind1, span2)",
        "secret = Secret::from_env()?;",
        "password = user_password_2",
        "let secret = load_secret_v2;",
        "this.token = token;",
        "token = tokens.next2",
        "case Token::Number: return 12345678;",
        "type Token = string",
        "import { token } from './token-1a2b3c4d';",
        "SECRET_KEY = config(\"SECRET_KEY\")",
        "PASSWORD_RESET_TIMEOUT=259200",
        "TOKEN=$(cat /run/secrets/token1)",
        "TOKEN=`cat token1234`",
        "token-based authentication: see section 12345678",
        "<input type=\"password\" name=\"password1\">",
        // Placeholders.
        "TOKEN=$TOKEN",
        "TOKEN=${TOKEN_12345}",
        "TOKEN=\"${TOKEN:-default1}\"",
        "token: <your-token>",
        "token: \"<your-token-1234>\"",
        "API_KEY=your-api-key-1234",
        "API_KEY=your_api_key_here",
        "\"password\": \"changeme\"",
        "\"password\": \"********\"",
        "password=xxxxxxxx",
        "password: None",
        "password=null",
        "\"token\": null",
        "\"token\": true",
        "token: {{ .Values.token }}",
        "token: \"{{ token_v1 }}\"",
        "token: %s",
        "password=%PASSWORD1%",
        "Authorization: Bearer $TOKEN",
        "Authorization: Bearer ${TOKEN_1}",
        "Authorization: Bearer <token>",
        "\"Authorization\": \"Bearer \" + token1,",
        "`Bearer ${accessToken1}`",
        "f\"Bearer {token1}\"",
        "password=[REDACTED]",
        "\"password\": \"[REDACTED]\"",
        "Authorization: Bearer [REDACTED]",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_...",
        "ghp_short",
        "sk-...",
        "sk-fading-circle-loader-10-of-12-large",
        "task-abcdefghijklmnopqrstuvwxyz0123",
        "AKIA1234",
        "AKIAIOSFODNN7EXAMPLELONGER",
        "BAKIAIOSFODNN7EXAMPLE",
        "claw_0123456789abcdef",
        "claw_registry::execute::tests::a_long_name_of_a_test_in_this_project",
        "sclaw_0123456789abcdef0123456789abcdef",
        "hf_hub_download",
        "gsk_test",
        "pypi-publish-action-of-the-whole-company",
        "SG.Group.members.of.the.team",
        "tskey-auth",
        "npm_config_registry_of_the_whole_company_1",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.md",
        // URLs.
        "https://example.org/a/b?c=d#e",
        "https://example.org:8080/user@host",
        "https://user@example.org/",
        "ssh://git@github.com:22/a/b.git",
        "git@github.com:owner/repo.git",
        "postgres://localhost:5432/db",
        "postgres://${USER}:${PASSWORD}@${HOST}/db",
        "postgres://user:<password>@host/db",
        "postgres://{user}:{password}@{host}/db",
        "mysql://%s:%s@%s/%s",
        "postgres://user:[REDACTED]@host/db",
        "postgres://user:***@host/db",
        "mailto:bob@example.org",
        // Ids.
        "550e8400-e29b-41d4-a716-446655440000",
        "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "id=da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "12:34:56:abcdefghijklmnopqrstuvwxyz012345678",
        "2024-05-01T12:34:56.123456Z INFO request handled",
        "pub const SEC_E_NO_CREDENTIALS: HRESULT = 0x8009030E;",
        "pub const NCRYPT_NO_CACHED_PASSWORD: u32 = 16384u32;",
        "- Bearer https://tools.ietf.org/html/rfc6750",
        "/usr/lib/x86_64-linux-gnu/some/very/long/path/that/goes/on/and/on/libfoo.so.1.2.3",
        "----------------------------------------------------------------------------------",
        "////////////////////////////////////////////////////////////////////////////////",
        "aVeryLongCamelCaseIdentifierThatGoesOnAndOnAndOnUntilItIsLongerThan64Characters",
        // Words that only look like those of a secret.
        "-----BEGIN RSA PRIVATE KEY----- is the first line of a key",
        "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
        "grep -r 'BEGIN RSA PRIVATE KEY' .",
    ] {
        check(text, text);
    }
    for mark in [
        "sha256:{}",
        "sha512-{}",
        "image@sha256:{}",
        "\"sha256\": \"{}\"",
        "checksum = \"{}\"",
        "\"digest\": \"{}\"",
        "digest: sha256:{}",
        "hash={}",
        "\"contentHash\":\"{}\"",
        "\"checksum autocfg 1.0.0 (registry+https://example.org/index)\" = \"{}\"",
        "integrity {}",
        "commit {}",
        "tree {}\nparent {}",
        "{}  file.txt\n",
        "{} *file.bin",
        "a\n{}  ./b\n",
        "--hash=sha256:{} \\",
        "{\\\"digest\\\":\\\"{}\\\"}",
    ] {
        let text = mark.replace("{}", hex);
        check(&text, &text);
    }
}

#[test]
fn public_pem() {
    let body = "\
MIIDXTCCAkWgAwIBAgIJAKL0UG+mRKqzMA0GCSqGSIb3DQEBCwUAMEUxCzAJBgNV
BAYTAkFVMRMwEQYDVQQIDApTb21lLVN0YXRlMSEwHwYDVQQKDBhJbnRlcm5ldCBX
aWRnaXRzIFB0eSBMdGQwHhcNMTcwODIzMTUxNTEyWhcNMjcwODIxMTUxNTEyWjBF
MQswCQYDVQQGEwJBVTETMBEGA1UECAwKU29tZS1TdGF0ZTEhMB8GA1UECgwYSW50
ZXJuZXQ9
";
    let certificate = format!("-----BEGIN CERTIFICATE-----\n{body}-----END CERTIFICATE-----\n");
    check(&certificate, &certificate);
    check(&certificate.repeat(3), &certificate.repeat(3));
    // Cut at either side.
    check(&certificate[..200], &certificate[..200]);
    check(&certificate[93..], &certificate[93..]);
    check(body, body);
    let armor = format!(
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: 1\n\n{}=aBc1\n-----END PGP PUBLIC KEY BLOCK-----\n",
        &body[65..260]
    );
    check(&armor, &armor);
    let image =
        format!("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4AAAA\n{}", &body[65..260]);
    check(&image, &image);
    let uri = format!("data:image/png;base64,{}", body.replace('\n', ""));
    check(&uri, &uri);
}
