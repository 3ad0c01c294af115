//! Configuration and code side by side: in the first any word after a secret's key is redacted, the second
//! stays.

use super::{Scrubber, check, check_by};
use crate::scrub::is_settings_file;

/// Checks that the text between `«` and `»` is redacted and the rest stays.
#[track_caller]
fn check_marked(marked: &str) {
    check_marked_by(&Scrubber::new(), marked);
}

#[track_caller]
fn check_marked_by(scrubber: &Scrubber, marked: &str) {
    let mut expected = String::new();
    for (i, part) in marked.split(['«', '»']).enumerate() {
        expected.push_str(if i % 2 == 0 { part } else { "[REDACTED]" });
    }
    check_by(scrubber, &marked.replace(['«', '»'], ""), &expected);
}

/// Settings in the files of many programs, one line each.
const LINES: &[&str] = &[
    // Basic cases.
    "password = «hunter2»",
    "db.password = «swordfish»",
    "POSTGRES_PASSWORD: «swordfish»",
    "host=db password=«letmein» user=x",
    "requirepass «foobared»",
    // .env
    "DB_PASSWORD=«root»",
    "MYSQL_ROOT_PASSWORD=«secret»",
    "POSTGRES_PASSWORD=«password»",
    "SMTP_PASS=«mail»",
    "export DB_PASSWORD=«abc»",
    "db_password=«swordfish»",
    "SECRET_KEY=«swordfish»",
    "API_TOKEN=«letmein»",
    "TOKEN=«letmein»",
    "PASSWORD=«12345678»",
    "PASSWORD=«sword.fish»",
    "REDIS_PASSWORD=«swordfish» # the cache",
    "#DB_PASSWORD=«swordfish»",
    // my.cnf, php.ini, odbc.ini, pip.conf, .pypirc
    "password=«letmein»",
    "password = «letmein»",
    "password\t=\t«letmein»",
    "Password = «letmein»",
    "PWD = «letmein»",
    "; password = «letmein»",
    "mysqli.default_pw_password = «letmein»",
    "client-secret = «letmein»",
    "password = «x7(Kq]9{w»",
    "password = «correct,horse;battery»",
    "password = «corrèct»",
    // .properties
    "spring.datasource.password=«swordfish»",
    "spring.datasource.hikari.data-source-properties.password=«swordfish»",
    "spring.datasource.password = «swordfish»",
    "javax.net.ssl.keyStorePassword=«changeit»",
    "user.password=«sword.fish»",
    // YAML, compose
    "password: «swordfish»",
    "  password: «swordfish»",
    "  password: «123456»",
    "  password: «super_secret»",
    "  password: «super-secret-password»",
    "  password: «Swordfish»",
    "  - password: «swordfish»",
    "      POSTGRES_PASSWORD: «postgres»",
    "      MYSQL_PASSWORD: «password»",
    "      - POSTGRES_PASSWORD=«postgres»",
    "      - MYSQL_ROOT_PASSWORD=«root»",
    "  password: «swordfish» # of the database",
    "  \"password\": «swordfish»",
    "  client_secret: «swordfish»",
    "  clientSecret: «swordfish»",
    "  api_key: «swordfish»",
    "  auth_token: «letmein»",
    "  smtp_pass: «mail»",
    "  password: \"«abc»\"",
    "  api_key: \"«swordfish»\"",
    // TOML, HCL
    "password = \"«abc»\"",
    "api_key = \"«swordfish»\"",
    "access_token = '«letmein»'",
    // JSON
    "  \"password\": \"«abc»\",",
    "  \"api_key\": \"«swordfish»\",",
    "  \"apiKey\": \"«swordfish»\"",
    "  \"db.password\": \"«swordfish»\",",
    // redis.conf, sentinel.conf
    "# requirepass «foobared»",
    "masterauth «swordfish»",
    "requirepass \"«swordfish»\"",
    "CONFIG SET requirepass «swordfish»",
    "sentinel.requirepass=«swordfish»",
    // .pgpass, .netrc
    "localhost:5432:mydb:bob:«swordfish»",
    "*:5432:*:bob:«swordfish»",
    "machine example.org login bob password «swordfish»",
    "default login anonymous password «swordfish»",
    // Connection strings
    "host=localhost port=5432 dbname=app user=bob password=«swordfish»",
    "\"host=localhost password=«swordfish» user=bob\"",
    "Server=db;Database=app;User Id=sa;Password=«letmein»;",
    "Server=db;Uid=sa;Pwd=«letmein»;Encrypt=yes",
    "jdbc:mysql://db:3306/app?user=bob&password=«swordfish»",
    "jdbc:postgresql://db/app?password=«swordfish»&user=bob",
    "jdbc:sqlserver://db:1433;user=sa;password=«letmein»",
    "mysql --user=root --password=«letmein» app",
    // wpa_supplicant.conf, wp-config.php
    "\tpsk=\"«swordfish»\"",
    "\tpsk=«swordfish»",
    "wpa_passphrase=«swordfish»",
    "define('DB_PASSWORD', '«swordfish»');",
    "define( 'DB_PASSWORD', '«swordfish»' );",
    // Dockerfile, Makefile, shell
    "ENV POSTGRES_PASSWORD=«root»",
    "ARG DB_PASSWORD=«root»",
    "docker run -e MYSQL_USER=x -e MYSQL_PASSWORD=«letmein» mysql",
    "password=«swordfish»",
    "  local password=«swordfish»",
    "DB_PASSWORD = «swordfish»",
    // Lines as tools print them.
    "    12\tpassword = «swordfish»",
    "    12: password = «swordfish»",
    "    12- password: «swordfish»",
    "12:password = «swordfish»",
    "conf/my.cnf:password = «swordfish»",
    "conf/my.cnf:12:password=«swordfish»",
    "+password = «swordfish»",
    "-  password: «swordfish»",
    "> POSTGRES_PASSWORD=«root»",
    "{\"text\":\"user = bob\\npassword = «swordfish»\\nport = 1\"}",
    // What a command prints.
    "Password: «swordfish»",
    "Secret: «swordfish»",
];

/// Whole files.
const FILES: &[&str] = &[
    "[client]\nuser = bob\npassword = «swordfish»\nhost = db\n\n[mysqldump]\npassword=«letmein»\n",
    "[smtp]\n\tuser = bob\n\tpassword = «swordfish»\n\tapi_key = «opensesame»\n\tsecret = «letmein»\n",
    "[global]\r\n   workgroup = HOME\r\n   ldap.password = «swordfish»\r\n",
    "[MyDSN]\nDriver = PostgreSQL\nServername = db\nUserName = bob\nPassword = «swordfish»\nPort = 5432\n",
    "[global]\nindex-url = https://bob:«swordfish»@pypi.example.org/simple\n",
    "[server-login]\nusername: bob\npassword: «swordfish»\n",
    "services:\n  db:\n    image: postgres:16\n    environment:\n      POSTGRES_USER: app\n      \
     POSTGRES_PASSWORD: «swordfish»\n      POSTGRES_DB: app\n    ports:\n      - \"127.0.0.1:5432:5432\"\n",
    "services:\n  db:\n    environment:\n      - MYSQL_USER=app\n      - MYSQL_PASSWORD=«swordfish»\n",
    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  username: bob\n  password: «swordfish»\n",
    "apiVersion: v1\nkind: Secret\ndata:\n  password: «c3dvcmRmaXNo»\n",
    "spring:\n  datasource:\n    url: jdbc:postgresql://db/app\n    username: bob\n    password: «swordfish»\n",
    "production:\n  adapter: postgresql\n  username: bob\n  password: «swordfish»\n  pool: 5\n",
    "machine example.org\n  login bob\n  password «swordfish»\nmachine other.org\nlogin eve\npassword «letmein»\n",
    "# host:port:database:user:password\ndb.internal:5432:app:bob:«swordfish»\n",
    "network={\n\tssid=\"home\"\n\tpsk=\"«swordfish»\"\n}\n",
    "{\n  \"host\": \"db\",\n  \"password\": \"«swordfish»\",\n  \"port\": 5432\n}\n",
    "[database]\nhost = \"db\"\npassword = \"«swordfish»\"\n\n[api]\napi_key = \"«letmein»\"\n",
    "resource \"aws_db_instance\" \"db\" {\n  username = \"bob\"\n  password = \"«swordfish»\"\n}\n",
    // Blocks of YAML.
    "password: |\n  «swordfish»\nuser: bob\n",
    "db:\n  password: >-\n    «correct horse\n    battery staple»\n  user: bob\n",
    "db:\n  password: |\n\n    «correct\n\n    horse»\n\n  user: bob\n",
    "db:\r\n  secret: |-\r\n    «correct horse»\r\n  user: bob\r\n",
    "password: |\n  «swordfish»",
    "     1\tdb:\n     2\t  password: |\n     3\t    «correct\n     4\t    horse»\n     5\t  user: bob\n",
    // Strings of TOML over several lines.
    "[db]\nhost = \"db\"\npassword = \"\"\"\n«swordfish\n»\"\"\"\nport = 1\n",
    "password = '''\n«correct horse\nbattery staple»'''\nport = 1\n",
    "api_key = \"\"\"\r\n«letmein\\\r\n  opensesame»\"\"\" # of the cache\r\n",
    "     1\t[db]\n     2\tpassword = \"\"\"\n«     3\tswordfish\n     4\t»\"\"\"\n     5\tport = 1\n",
    // A key's markers stay.
    "private_key: |\n  -----BEGIN RSA PRIVATE KEY-----\n  \
     «MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MaVYqmJ1dXCaGZ7x»\n  -----END RSA PRIVATE KEY-----\n",
];

/// Code, prose and settings without a secret.
const STAYS: &[&str] = &[
    // Basic cases.
    "self.password = password",
    "let password = args.password.clone();",
    // Rust
    "    password: String,",
    "    pub password: Option<SecretString>,",
    "    password: password.into(),",
    "    password,",
    "    let secret = value;",
    "    self.secret = secret;",
    "    Family::Password => Style::Quoted,",
    "    Password => hidden",
    "    Some(password) => password",
    "    if password == stored {",
    "const PASSWORD: &str = PLACEHOLDER;",
    "    password = rest",
    "    secret = read",
    "        password: hash",
    "//! password: what a person types",
    "    api_key: ApiKey",
    // Python
    "def f():\n    password = \"\"\"\n    swordfish\n    \"\"\"\n",
    "self.password = \"\"\"\nswordfish\n\"\"\"\n",
    "password = \"\"\"\n\"\"\"\n",
    "password = \"\"\"\nswordfish\n",
    "password = f(\"\"\"\nswordfish\n\"\"\")\n",
    "self.password = hashed",
    "user.password = hashed",
    "password = password",
    "password = pw",
    "password = user_password",
    "password = args.password",
    "password = getpass.getpass()",
    "password = sys.argv[1]",
    "password = None",
    "    password = swordfish",
    "    password: str",
    "    password: str = None",
    "    password: Optional[str] = None",
    "    password: SecretStr",
    "    password=password",
    "    password=password,",
    "    password=pw)",
    "    password=settings.DB_PASSWORD",
    "    password=args.password,",
    "    secret=secret_value,",
    "connect(host=host, password=pw, user=user)",
    "connect(host, password=pw)",
    "\"password\": password,",
    "'password': form.password",
    "def login(user, password=None, token=None):",
    "assert password == expected",
    "token = response",
    "token = next",
    "token = tokens",
    "credentials = creds",
    "render_pass = shadow",
    "    first_pass: fast",
    // JavaScript, TypeScript
    "  password: string",
    "  password?: string;",
    "  password: hashedPassword",
    "  password: req.body.password,",
    "  password: user.password",
    "  token: jwt,",
    "  secret: jwtConstants.secret,",
    "  secret: Buffer",
    "  credentials: include",
    "const { password } = req.body;",
    "this.password = newPassword",
    "this.password = pw;",
    "password = e.target.value;",
    "  password: z.string().min(8),",
    "  password: { type: String, required: true },",
    "  passwordField = newField;",
    // Go, Java, C, C#, Kotlin, Swift, Ruby, PHP
    "password := cfg.Password",
    "\tPassword string `json:\"password\"`",
    "\tPassword: cfg.Password,",
    "\tpassword = strings.TrimSpace(line)",
    "this.password = password;",
    "private String password;",
    "String password = request.getPassword();",
    "user->password = strdup(pw);",
    "password = buf;",
    "char *password = argv[1];",
    "#define PASSWORD_MAX 64",
    "val password: String",
    "let token: Token",
    "@password = password",
    "password = params[:password]",
    "$password = $row['password'];",
    "$this->password = $password;",
    // Shell
    "password=$1",
    "password=\"$1\"",
    "PASSWORD=${PASSWORD:-none}",
    "read -rs password",
    "PASSWORD=$(pass show db)",
    "PWD=/root",
    "PWD=/srv",
    "OLDPWD=/",
    "password_file=secret.txt",
    // SQL, GraphQL, protobuf, HCL
    "  password VARCHAR(255) NOT NULL,",
    "WHERE user = $1 AND password = $2",
    "SELECT password FROM users",
    "UPDATE users SET password = crypt($1, salt)",
    "  password: String!",
    "  string password = 1;",
    "  password = var.db_password",
    "  password = random_password.db.result",
    "  token    = local.token",
    // YAML, INI and others without a secret
    "password: ${DB_PASSWORD}",
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: {{ db_password }}",
    "password: !vault |",
    "password: !secret db_password",
    "password:",
    "password: ",
    "password =",
    "PASSWORD=",
    "password: null",
    "password: ~",
    "password: true",
    "password: \"\"",
    "password = ''",
    "password: <your password>",
    "password: <password>",
    "password = changeme",
    "password: your_password",
    "password: \"********\"",
    "password: /run/secrets/db",
    "POSTGRES_PASSWORD_FILE: /run/secrets/db",
    "      secretKeyRef:",
    "      secretName: db",
    "token_limit: 4000",
    "max_tokens = 4096",
    "password_min_length=8",
    "password_hash: bcrypt",
    "password-algorithm = argon2id",
    "requirepass",
    "masterauth <master-password>",
    "PasswordAuthentication no",
    "127.0.0.1:5432:5432",
    "- \"5432:5432\"",
    // Prose and what programs print
    "Password: ",
    "Password: required",
    "Password: incorrect",
    "password: must have 8 characters",
    "The password: swordfish was wrong",
    "- password: the password of the user",
    "| password | string | the password of the user |",
    "* **password**: the user's password",
    "`password: swordfish` is hidden",
    "password swordfish",
    "password reset",
    "the requirepass option is set",
    "my login is bob, password unknown",
    "usage: login --password=PASSWORD",
    "  --password PASSWORD  the password",
    "user=bob password=? host=db",
    "containing login and password for ftp",
    "               owner_secret: str):",
    "               owner_secret=None):",
    "               access_token=request.owner):",
    "pub const WPA_PSK: ALGORITHM = DOT11_WPA_PSK;",
    "    offered_psk: hello",
    "level=info msg=ok token=expired user=5",
    "password=[REDACTED]",
    "password: |\n  [REDACTED]\nuser: bob",
    "password: |\nuser: bob",
    "script: |\n  password reset\n  done",
];

#[test]
fn plain_words_after_a_secrets_key_go() {
    for line in LINES {
        check_marked(line);
        check_marked(&format!("a = 1\n{line}\nb = 2\n"));
    }
}

#[test]
fn whole_files_are_hidden_line_by_line() {
    for file in FILES {
        check_marked(file);
    }
}

#[test]
fn code_prose_and_settings_without_a_secret_stay() {
    for line in STAYS {
        check(line, line);
        let among = format!("a = 1\n{line}\nb = 2\n");
        check(&among, &among);
        let numbered = format!("    12\t{line}");
        check(&numbered, &numbered);
    }
}

#[test]
fn indented_settings_go_in_a_section_alone() {
    check_marked("[smtp]\n  # mail\n  user = bob\n  password = «swordfish»\n");
    check_marked("def f():\n    user = bob\n    password = swordfish\n");
    check_marked("x = [1]\n    password = swordfish\n");
    check_marked("if (a[0])\n    password = swordfish\n");
}

/// Settings that only the name of their file tells from code.
const BY_NAME: &[&str] = &[
    "password = «password»",
    "password = «pw»",
    "password = «user_password»",
    "password = «hash»",
    "password: «secret»",
    "password: «String»",
    "password=«a»",
    "    password = «swordfish»",
    "pass: «swordfish»",
    "token: «letmein»",
    "token = «abc»",
    "credentials = «swordfish»",
    "api_key: «abc»",
    "password = «changeme»",
    "password = «correct horse battery staple»",
    "password: «correct horse» # of the database",
    "password = «x7(Kq]9{w}»",
    "password = «it's»",
    "password = «a\\b\"c»",
    "password:«swordfish»",
    "password: «unset»",
    "user.password = «hashed»",
    "self.password = «password»",
    "password: \"«a»\"",
    "password: '«correct horse, of the stable»'",
    "{\"user\": \"bob\", \"password\": \"«abc»\", \"token\": \"«y»\"}",
    "{\"password\": «1234», \"port\": 1}",
    "{\"port\": 1, \"pin_password\": «1234»}",
    "db: {user: bob, password: «swordfish»}",
    "db: {password: «swordfish», user: bob}",
    "  \"password\": «123456»,",
    "set password=«password»",
    "export TOKEN=«q»",
    // TOML over several lines, and a continued line of `.properties`.
    "password = \"\"\"«a»\"\"\"",
    "password = \"\"\"\n«swordfish\nhunter2\n»\"\"\"",
    "password = '''\n«swordfish\n\\»'''\nhost = \"db\"",
    "token = \"\"\"«\\\n  swordfish\n  say \\\"\"\"\\\" twice»\"\"\"",
    "password = «sword\\\n  fish\\\n  hunter2»\nuser = bob",
];

/// Settings of a configuration file that stay.
const STAYS_BY_NAME: &[&str] = &[
    "password: ${DB_PASSWORD}",
    "token: ${{ secrets.TOKEN }}",
    "password: {{ db_password }}",
    "password: !vault |",
    "password:",
    "password: ",
    "PASSWORD=",
    "password: null",
    "password: ~",
    "password: \"\"",
    "password: /run/secrets/db",
    "password = [REDACTED] # of the database",
    "id-token: write",
    "credentials: include",
    "password: {type: string}",
    "\"password\": {",
    "\"tokens\": [\"a\", \"b\"]",
    "secretName: db",
    "token_limit: 4000",
    "max_tokens = 4096",
    "password_min_length=8",
    "# the password: of the user",
    "key: name",
    "sort_key = name",
    "host = db",
];

#[test]
fn in_a_file_known_as_configuration_any_value_of_a_secrets_key_goes() {
    let scrubber = Scrubber::new().for_settings();
    for line in BY_NAME.iter().chain(LINES) {
        check_marked_by(&scrubber, line);
        check_marked_by(&scrubber, &format!("a = 1\n{line}\nb = 2\n"));
    }
    for line in BY_NAME {
        check_marked_by(&scrubber, &format!("    12\t{line}\r\n"));
    }
    for file in FILES {
        check_marked_by(&scrubber, file);
    }
    for line in STAYS_BY_NAME {
        check_by(&scrubber, line, line);
        let among = format!("a = 1\n{line}\nb = 2\n");
        check_by(&scrubber, &among, &among);
    }
    let long = format!("password = «{}»\nport = 1", "correct horse ".repeat(60).trim_end());
    check_marked_by(&scrubber, &long);
}

/// Lines of configuration files, as tools print them with the names of the files, and lines of others.
const PRINTED: &[&str] = &[
    // `grep -r`, `grep -rn`, `rg`, with context, and of a revision.
    "./.env:PASSWORD=«password»\nsrc/main.rs:    let password = password;\n",
    ".env:3:token=«abc»\nsrc/a.py:3:token = abc\n",
    "conf/app.yml:12:5:  password: «String»\nsrc/a.ts:12:5:  password: String\n",
    "conf/my.cnf-7-password = «pw»\nsrc/my.rs-7-password = pw\n",
    "HEAD:.env:PASSWORD=«password»\norigin/main:conf/a.ini:3:password = «pw»\nHEAD:a.py:3:password = pw\n",
    ".env.example:PASSWORD=changeme\n",
    // Of a string over several lines, only what was printed of its file.
    "a.toml:password = \"\"\"\nsrc/a.py:password = pw\nb.toml:host = db\n",
    "a.toml:2:password = \"\"\"\n«a.toml-3-swordfish»\n--\nsrc/a.py:9:password = pw\nsrc/a.py-10-x = 1\n",
    "a.toml:2:password = \"\"\"\n«a.toml-3-swordfish\na.toml-4-»\"\"\"\na.toml-5-port = 1\nsrc/a.py:password = pw\n",
    // `git diff`, `git show`, `git log -p`, `diff -u`.
    "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1,2 +1,2 @@\n user=bob\n-password=«password»\n+password=«pw»\n \
     token=«q»\n",
    "--- a/.env\n+++ /dev/null\n@@ -1 +0,0 @@\n-password=«pw»\n--- /dev/null\n+++ b/a.toml\n+password = «pw»\n",
    "--- old/my.cnf\t2024-05-01 10:00\n+++ new/my.cnf\t2024-05-02 10:00\n+password = «pw»\n",
    "--- a/.env\n+++ b/.env\n+password=«pw»\n--- a/a.py\n+++ b/a.py\n+password = pw\n",
    "--- a/.env\n+++ b/.env\n+password=«pw»\n\nerror: here\npassword = pw\n",
    "+++ b/.env\n+password = pw\n",
    "a +++ b/.env\npassword = pw\n",
    // `head` and `tail` of several files.
    "==> .env <==\npassword=«pw»\n\n==> a.py <==\npassword = pw\n",
    // `git blame`.
    ".env:^1a2b3c4d (Ann Lee 2024-05-01 10:00:00 +0000 12) password=«password»\n",
];

#[test]
fn a_printed_name_of_a_configuration_file_hides_the_values_of_its_lines() {
    for printed in PRINTED {
        check_marked(printed);
        check_marked(&printed.replace('\n', "\r\n"));
        check_marked(&format!("first\n{printed}last\n"));
    }
    // However far below its name a line is.
    let between = " a = 1\n".repeat(2000);
    let text = format!("--- a/.env\n+++ b/.env\n{between}+password=pw\n{between}");
    let scrubbed = text.replace("pw", "[REDACTED]");
    assert_eq!(Scrubber::new().scrub(&text), scrubbed);
    for size in [1, 100, 3000] {
        let pieces = text.as_bytes().chunks(size);
        let passed = super::in_pieces(&Scrubber::new(), pieces);
        assert_eq!(String::from_utf8_lossy(&passed), scrubbed, "pieces of {size}");
    }
    let blamed = "1a2b3c4d (Ann Lee 2024-05-01 10:00:00 +0000 12) password=«password»";
    check_marked_by(&Scrubber::new().for_settings(), blamed);
}

#[test]
fn configuration_files_are_known_by_their_names() {
    for name in [
        ".env",
        "/srv/app/.env.production",
        "prod.env",
        "my.cnf",
        "php.ini",
        "application.properties",
        "docker-compose.yml",
        "a/compose.yaml",
        "Rocket.TOML",
        "appsettings.json",
        "redis.conf",
        "~/.aws/credentials",
        ".netrc",
    ] {
        assert!(is_settings_file(name), "{name}");
    }
    for name in [
        "main.rs",
        ".env.example",
        "config.schema.json",
        "env",
        "json",
        "README.md",
        "password",
        "a.json/b.py",
        "",
    ] {
        assert!(!is_settings_file(name), "{name}");
    }
}
