"""The shapes of secrets that can be told by themselves: provider tokens, keys and hashes.

Each row is a kind, the literals one of which must occur (found by `str.find`, so that a text
without them costs microseconds and no pattern is compiled), how many characters before that
literal the secret may begin, and its pattern. A row without literals is tried where long runs of
token characters begin. A group, where there is one, is the secret; else the whole match is.
Quantifiers are bounded, possessive or last: matching stays linear.
"""

from __future__ import annotations

from functools import cache
from re import Pattern, compile

Row = tuple[str, str, int, str]  # kind, literals separated by blanks, reach back, pattern

# A short prefix must not be the tail of a word, but may follow `%3D` of a URL or `\n` of JSON.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"
_TOP = _EDGE.replace("A-Za-z0-9]", r"\w-]", 1)  # at the head of its whole run: one try a run
_END = r"(?![A-Za-z0-9])"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# A key block runs to its END line; where that is missing, as far as lines of base64 go.
_PEM_BODY = (
    r"(?:(?:[^-]|-(?!----)){0,32768}+-----END [A-Z0-9 ]{0,40}-----"
    r"|(?:(?:\s|\\[nr]|>|\+)*+[A-Za-z0-9+/=]{16,}+)*+)"
)

# fmt: off
ROWS: tuple[Row, ...] = (
    ("private-key", "-----BEGIN", 0,
     r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----" + _PEM_BODY),
    ("private-key", "PuTTY-User-Key-File", 0,
     r"PuTTY-User-Key-File-\d:.{0,80}\n(?:[^\n]{0,200}\n){1,200}?Private-(?:MAC|Hash): ?[0-9a-f]+"),
    ("private-key", "SSH2", 11,
     r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:[^-]|-(?!---)){0,32768}+---- END [A-Z0-9 ]{0,40}----"),
    ("age-key", "AGE-SECRET-KEY-", 0, r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{50,}"),
    ("anthropic-key", "sk-ant-", 0, r"sk-ant-[\w-]{16,}"),
    ("openrouter-key", "sk-or-", 0, r"sk-or-(?:v\d-)?[\w-]{32,}"),
    ("openai-key", "sk-", 0,
     _EDGE + r"sk-(?!ant-|or-)(?:(?:proj|svcacct|admin|None)-[\w-]{20,}"
     r"|(?:[\w-]{0,20}-)?(?=[A-Za-z]*\d)[A-Za-z0-9]{20,})"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", 0, r"gh[pousr]_(?:[A-Za-z0-9]{30,}|\d+_[\w.-]{30,})"),
    ("github-token", "github_pat_", 0, r"github_pat_\w{22,}"),
    ("gitlab-token",
     "glpat- gldt- glft- glsoat- glrt- glrtr- glcbt- glimt- glptt- glagent- gloas- glffct- glwt-", 0,
     r"gl(?:pat|dt|ft|soat|rtr?|cbt|imt|ptt|agent|oas|ffct|wt)-[\w.-]{19,}\w"),
    ("gitlab-token", "GR1348941", 0, r"GR1348941[\w-]{20,}"),
    ("bitbucket-token", "ATBB ATCTT", 0, _EDGE + r"(?:ATBB[A-Za-z0-9]{24,}|ATCTT3x[\w=-]{60,})"),
    ("atlassian-token", "ATATT3", 0, r"ATATT3[\w=-]{60,}"),
    ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp- xwfp-", 0,
     r"(?:xox[a-eoprs][-.]|xapp-|xwfp-)[A-Za-z0-9%.-]{14,}[A-Za-z0-9]"),
    ("slack-webhook", "hooks.slack.com/", 0,
     r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{30,})"),
    ("discord-webhook", "/api/webhooks/", 0, r"/api/webhooks/(\d{15,22}/[\w-]{40,})"),
    ("teams-webhook", ".webhook.office.com/", 0, r"\.webhook\.office\.com/webhookb?2?/([\w@/-]{60,})"),
    ("zapier-webhook", "hooks.zapier.com/", 0, r"hooks\.zapier\.com/hooks/catch/(\d+/[a-z0-9]{6,})"),
    ("discord-token", "", 0,
     _TOP + r"(?:mfa\.[\w-]{80,}|[MNO][A-Za-z\d_-]{22,27}\.[\w-]{6}\.[\w-]{27,40})" + _END),
    ("stripe-key", "sk_live_ rk_live_ sk_test_ rk_test_ sk_org_", 0, r"[sr]k_(?:live|test|org)_\w{16,}"),
    ("stripe-key", "whsec_", 0, r"whsec_[A-Za-z0-9+/]{24,}=*"),
    ("aws-key", "AKIA ASIA ABIA ACCA A3T", 0, r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])"),
    ("aws-session-token", "IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", 0,
     r"(?:IQoJb3JpZ2lu|F[wQ]oGZXIvYXdz)[A-Za-z0-9+/%=]{60,}"),
    ("aws-bedrock-key", "ABSK bedrock-api-key-", 0,
     r"(?:ABSKQmVkcm9ja|bedrock-api-key-)[A-Za-z0-9+/]{60,}=*"),
    ("google-key", "AIza", 0, r"AIza[\w-]{35}"),
    ("google-key", "AQ.Ab8", 0, r"AQ\.Ab8[\w-]{40,}"),
    ("google-token", "ya29.", 0, r"ya29\.[\w-]{20,}"),
    ("google-token", "1//0", 0, _EDGE + r"1//0[\w-]{40,}"),
    ("google-secret", "GOCSPX-", 0, r"GOCSPX-[\w-]{24,}"),
    ("azure-key", "AccountKey= SharedAccessKey= accesskey=", 0,
     r"(?:AccountKey|SharedAccessKey|accesskey)=([A-Za-z0-9+/%]{40,}={0,2})"),
    ("azure-sas", "sig=", 0, r"sig=([A-Za-z0-9+/%]{40,}={0,2})"),
    ("azure-secret", "8Q~ 7Q~", 4, r"[\w.~-]{3}[78]Q~[\w.~-]{31,34}"),
    ("azure-key", "AZDO AzSe AzCa ACDb ACRC", 84,
     r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{33,84}(?:AZDO|AzSe|AzCa|ACDb|ACRC)[A-Za-z0-9+/]{4,16}={0,2}"),
    ("npm-token", "npm_", 0, r"npm_[A-Za-z0-9]{30,}"),
    ("npm-token", "_authToken", 0, r"_authToken\s?=\s?[\"']?([\w+/-]{16,}={0,2})"),
    ("pypi-token", "pypi-AgE", 0, r"pypi-AgE[\w-]{50,}"),
    ("rubygems-key", "rubygems_", 0, r"rubygems_[0-9a-f]{40,}"),
    ("crates-token", "cio", 0, _EDGE + r"cio[A-Za-z0-9]{32}" + _END),
    ("nuget-key", "oy2", 0, _EDGE + r"oy2[a-z0-9]{43}" + _END),
    ("clojars-token", "CLOJARS_", 0, r"CLOJARS_[a-z0-9]{60}"),
    ("docker-token", "dckr_pat_ dckr_oat_", 0, r"dckr_[po]at_[\w-]{20,}"),
    ("huggingface-token", "hf_ api_org_", 0, _EDGE + r"(?:hf_|api_org_)[A-Za-z0-9]{30,}"),
    ("telegram-token", ":AA %3AAA", 10, r"(?<!\d)\d{8,10}(?::|%3A)AA[\w-]{33}(?![\w-])"),
    ("sendgrid-key", "SG.", 0, r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    ("twilio-key", "SK AC", 0, _EDGE + r"(?:SK|AC)(?=[a-f]*\d)[0-9a-f]{32}" + _END),
    ("mailgun-key", "key-", 0, _EDGE + r"(?:pub)?key-[0-9a-f]{32}" + _END),
    ("mailgun-key", "", 0, _TOP + r"[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9a-f-])"),
    ("mailchimp-key", "-us", 32, r"(?<![0-9a-z])[0-9a-f]{32}-us\d{1,2}" + _END),
    ("brevo-key", "xkeysib- xsmtpsib-", 0, r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    ("resend-key", "re_", 0, _EDGE + r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", 0, r"do[por]_v1_[0-9a-f]{64}"),
    ("fly-token", "FlyV1 fm1r_ fm1a_ fm2_ fo1_", 0,
     r"(?:FlyV1 )?(?:fm1[ar]|fm2|fo1)_[\w+/=%-]{30,}(?:,fm\d[ar]?_[\w+/=%-]{30,}){0,8}"),
    ("heroku-key", "HRKU-", 0, r"HRKU-[\w-]{36,}"),
    ("cloudflare-token", "cfk_ cfut_ cfat_", 0, _EDGE + r"cf(?:k|ut|at)_[A-Za-z0-9_-]{40,}"),
    ("cloudflare-token", "v1.0-", 0, r"v1\.0-[0-9a-f]{24}-[0-9a-f]{140,}"),
    ("databricks-token", "dapi", 0, _EDGE + r"dapi[0-9a-f]{32}(?:-\d)?"),
    ("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.", 0,
     r"dp\.(?:pt|st|ct|said?|scim|audit)\.[\w.-]{40,}"),
    ("linear-key", "lin_api_ lin_oauth_ lin_wh_", 0, r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{32,}"),
    ("notion-token", "ntn_", 0, r"ntn_[A-Za-z0-9]{40,}"),
    ("notion-token", "secret_", 0, r"secret_[A-Za-z0-9]{43}" + _END),
    ("airtable-key", "pat", 0, _EDGE + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("airtable-key", "key", 0, _EDGE + r"key(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{14}" + _END),
    ("square-token", "sq0atp- sq0csp- sq0idp-", 0, r"sq0(?:atp|csp|idp)-[\w-]{22,43}"),
    ("square-token", "EAAA", 0, _EDGE + r"EAAA[\w-]{56,64}" + _END),
    ("facebook-token", "EAA", 0, _EDGE + r"EAA[A-Za-z0-9]{80,}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_", 0,
     r"shp(?:at|ca|pa|ss|tka|ua)_[0-9a-fA-F]{32}"),
    ("jwt", "eyJ ewog", 0,
     _TOP + r"(?:eyJ|ewog)[\w-]{8,}+\.(?:eyJ|ewog)?[\w-]{4,}\.(?:[\w-]*\.[\w-]*\.)?[\w-]*"),
    # Broken over two lines, as terminals and mail do it.
    ("jwt", "eyJ", 0,
     _TOP + r"eyJ[\w-]{8,400}(?:\r?\n[ \t>]{0,8}[\w-]{2,400})?\.eyJ[\w-]{4,2000}"
     r"(?:\r?\n[ \t>]{0,8}[\w-]{2,2000})?\.[\w-]{20,}"),
    ("vault-token", "hvs. hvb. hvr.", 0, r"hv[sbr]\.[\w-]{24,}"),
    ("vault-token", "s.", 0, r"(?<![\w./-])s\.(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{24}(?![\w.])"),
    ("terraform-token", ".atlasv1.", 14, r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}"),
    ("grafana-token", "glc_ glsa_", 0, r"gl(?:c_[A-Za-z0-9+/=%]{32,}|sa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8})"),
    ("newrelic-key", "NRAK- NRII- NRJS- NRRA- NRIQ-", 0, r"NR(?:AK|II|JS|RA|IQ)-[\w-]{19,}"),
    ("sentry-token", "sntrys_ sntryu_", 0, r"sntry[su]_[\w+/=-]{60,}"),
    ("postman-key", "PMAK-", 0, r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("planetscale-token", "pscale_", 0, r"pscale_(?:tkn|pw|oauth)_[\w.=-]{32,}"),
    ("supabase-key", "sbp_ sb_secret_", 0, r"sb(?:p_(?:v\d+\.)?(?:oauth_)?[0-9a-f]{40}|_secret_[\w-]{20,})"),
    ("vercel-token", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", 0,
     _EDGE + r"(?:vc[piark]_|vercel_blob_rw_)[\w-]{24,}"),
    ("netlify-token", "nfp_ nfc_ nfo_ nfu_ nfb_", 0, _EDGE + r"nf[pcoub]_[A-Za-z0-9]{36,}"),
    ("render-key", "rnd_", 0, _EDGE + r"rnd_[A-Za-z0-9]{28,}"),
    ("groq-key", "gsk_", 0, r"gsk_[A-Za-z0-9]{40,}"),
    ("xai-key", "xai-", 0, _EDGE + r"xai-[A-Za-z0-9]{40,}"),
    ("replicate-token", "r8_", 0, _EDGE + r"r8_[A-Za-z0-9]{36,}"),
    ("perplexity-key", "pplx-", 0, r"pplx-[A-Za-z0-9]{40,}"),
    ("fireworks-key", "fw_", 0, _EDGE + r"fw_[A-Za-z0-9]{22,}" + _END),
    ("together-key", "tgp_v1_", 0, r"tgp_v1_[\w-]{40,}"),
    ("langsmith-key", "lsv2_", 0, r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    ("pinecone-key", "pcsk_", 0, r"pcsk_\w{40,}"),
    ("elevenlabs-key", "sk_", 0, _EDGE + r"sk_[0-9a-f]{48}" + _END),
    ("tavily-key", "tvly-", 0, r"tvly-(?:dev-|prod-)?[A-Za-z0-9-]{20,}"),
    ("firecrawl-key", "fc-", 0, _EDGE + r"fc-[0-9a-f]{32}" + _END),
    ("jina-key", "jina_", 0, r"jina_[A-Za-z0-9_-]{50,}"),
    ("cerebras-key", "csk-", 0, _EDGE + r"csk-[a-z0-9]{40,}"),
    ("voyage-key", "pa-", 0, _EDGE + r"pa-(?=[A-Za-z_-]*\d)(?=[a-z0-9_-]*[A-Z])[A-Za-z0-9_-]{43}" + _END),
    ("nvidia-key", "nvapi-", 0, r"nvapi-[\w-]{40,}"),
    ("e2b-key", "e2b_", 0, _EDGE + r"e2b_[0-9a-f]{40}"),
    ("langfuse-key", "sk-lf-", 0, r"sk-lf-" + _UUID),
    ("figma-token", "figd_ figu_ figo_", 0, r"fig[duo]_[\w-]{40,}"),
    ("dropbox-token", "sl.", 0, _EDGE + r"sl\.(?:u\.)?[\w-]{120,}"),
    ("hubspot-token", "pat-", 0, _EDGE + r"pat-(?:na|eu|ap)\d-" + _UUID),
    ("typeform-token", "tfp_", 0, r"tfp_[\w.=-]{40,59}"),
    ("asana-token", "0/ 1/ 2/", 0, _TOP + r"[012]/\d{13,}(?:/\d{13,})?:[0-9a-f]{32}"),
    ("okta-token", "SSWS ", 0, r"SSWS (00[\w-]{38,40})"),
    ("tailscale-key", "tskey-", 0, r"tskey-[a-z]+-[A-Za-z0-9]{8,}(?:-[A-Za-z0-9]{16,})?"),
    ("pulumi-token", "pul-", 0, _EDGE + r"pul-[0-9a-f]{40}"),
    ("prefect-key", "pnu_ pnb_", 0, _EDGE + r"pn[ub]_[A-Za-z0-9]{36}"),
    ("buildkite-token", "bkua_ bkct_ bkaj_", 0, r"bk(?:ua|ct|aj)_[A-Za-z0-9]{32,}"),
    ("circleci-token", "CCIPAT_ CCIPRJ_", 0, r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    ("sonar-token", "sqp_ squ_ sqa_", 0, _EDGE + r"sq[pua]_[0-9a-f]{40}"),
    ("onepassword-token", "ops_eyJ", 0, r"ops_eyJ[\w+/=-]{100,}"),
    ("onepassword-key", "A3-", 0,
     _EDGE + r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    ("dynatrace-token", "dt0c01. dt0s", 0, r"dt0[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    ("adafruit-key", "aio_", 0, _EDGE + r"aio_[A-Za-z0-9]{28}"),
    ("easypost-key", "EZAK EZTK", 0, r"EZ[AT]K[A-Za-z0-9]{54}"),
    ("flutterwave-key", "FLWSECK", 0, r"FLWSECK(?:_TEST|_LIVE)?-[A-Za-z0-9]{12,}(?:-X)?"),
    ("razorpay-key", "rzp_", 0, r"rzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    ("plaid-token", "access-", 0, r"access-(?:sandbox|development|production)-" + _UUID),
    ("paypal-token", "access_token$", 0, r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    ("artifactory-token", "AKCp cmVmdGtu", 0, _EDGE + r"(?:AKCp[A-Za-z0-9]{60,}|cmVmdGtu[A-Za-z0-9]{50,})"),
    ("adobe-secret", "p8e-", 0, _EDGE + r"p8e-[\w-]{32}"),
    ("alibaba-key", "LTAI", 0, _EDGE + r"LTAI(?=[A-Za-z]*\d)[A-Za-z0-9]{12,26}" + _END),
    ("tencent-key", "AKID", 0, _EDGE + r"AKID(?=[A-Za-z]*\d)[A-Za-z0-9]{32}" + _END),
    ("yandex-key", "AQVN t1.9eu", 0, r"AQVN[\w-]{35,38}|t1\.9eu[\w.=-]{60,}"),
    ("openshift-token", "sha256~", 0, r"sha256~[\w-]{43}"),
    ("readme-key", "rdme_", 0, r"rdme_[a-z0-9]{70}"),
    ("contentful-token", "CFPAT-", 0, r"CFPAT-[\w-]{43}"),
    ("duffel-token", "duffel_", 0, r"duffel_(?:test|live)_[\w-]{43}"),
    ("frameio-token", "fio-u-", 0, r"fio-u-[\w=-]{60,}"),
    ("shippo-token", "shippo_", 0, r"shippo_(?:live|test)_[0-9a-f]{40}"),
    ("posthog-key", "phx_", 0, r"phx_[A-Za-z0-9]{40,}"),
    ("extended-key", "xprv tprv zprv", 0, _EDGE + r"[xtz]prv[1-9A-HJ-NP-Za-km-z]{100,112}"),
    ("password-hash", "$2a$ $2b$ $2y$ $argon2 $6$ $5$ $1$ $apr1$ $y$ $scrypt %242", 0,
     r"(?:\$|%24)(?:2[aby](?:\$|%24)\d\d(?:\$|%24)[./A-Za-z0-9%]{53,59}|argon2(?:id|i"
     r"|d)\$[\w=,+/$.-]{40,}|(?:[156]|apr1|y|scrypt)\$[\w=,+/$.-]{20,})"),
    # What stands in a place made for secrets: `CHECKED` kinds, whose values are judged besides.
    ("cookie", "sessionid= PHPSESSID= JSESSIONID= connect.sid= ookie:", 0,
     r"(?:sessionid|PHPSESSID|JSESSIONID|connect\.sid|ookie: [^\n]{0,200}?(?:sess|auth|sid|token)\w*)"
     r"=([\w%.~+/-]{16,})"),
    ("aws-signature", "-Signature=", 0, r"-Signature=([0-9a-f]{64,512})"),
    ("url-password", "://", 0, r"://[^\s/:@\"'<>]{0,200}:([^\s/\"'<>]{1,500})@"),
    # Databases' own, in which people leave a slash as it is.
    ("url-password", "://", 20,
     r"(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?|mssql|sqlserver|clickhouse)(?:\+\w{1,12})?"
     r"://[^\s/:@\"'<>]{0,80}:((?!\d{1,5}/)[^\s\"'<>]{1,200})@[\w.-]"),
    ("url-token", "://", 0, r"://([^\s/:@\"'<>.]{16,500})@"),
    ("bearer-token", "Bearer bearer BEARER", 0, r"(?i:bearer)(?:\s{1,4}|%20)([\w.~+/-]{12,}={0,2})"),
    ("basic-auth", "Basic basic BASIC", 0, r"(?i:basic)(?:\s{1,4}|%20)([A-Za-z0-9+/]{8,}={0,2})"),
    ("basic-auth", "auth\"", 0, r"auth\\?\"\s{0,4}:\s{0,4}\\?\"([A-Za-z0-9+/]{8,}={0,2})"),
    ("password", "-u --user", 0, r"(?:-u|--user)[\s=]{0,3}[\"']?[\w.@+-]{1,80}:([^\s\"'/@]{4,200})"),
    ("password", "mysql", 0, r"mysql(?:dump|admin|sh)?[^\n]{0,120}?\s-p[\"']?([^\s\"']{4,200})"),
    ("password", "sshpass redis-cli docker", 0,
     r"(?:sshpass|redis-cli|docker login)[^\n]{0,120}?\s-[pa]\s?[\"']?([^\s\"']{4,200})"),
    ("password", "login", 0, r"login\s{1,9}\S{1,120}\s{1,9}password\s{1,9}(\S{3,200})"),
    ("password", ":5432: :3306: :*:", 0, r":[\d*]{1,5}:[\w*-]{1,80}:[\w*-]{1,80}:(\S{4,200})"),
    ("password", "echo printf", 0,
     r"(?:echo|printf) (?:-n )?[\"']?([^\"'|\n]{4,200}?)[\"']? ?\|"
     r"[^\n|]{0,80}(?:--password-stdin|-pass(?:in)? stdin|sudo -S)"),
    ("password", "auth", 0, r"auth\s?=\s?\(\s?[\"'][^\"'\n]{1,80}[\"'],\s?[\"']([^\"'\n]{4,200})[\"']"),
    ("password", "密码 密碼 口令 パスワード 비밀번호 ароль asswort asse enha ontrase", 10,
     r"(?:密码|密碼|口令|パスワード|비밀번호|[Пп]ароль|[Pp]asswort|[Mm]ot de passe|[Ss]enha"
     r"|[Cc]ontrase(?:ñ|n)a)"
     r"[^\n:：=]{0,30}?(?:是|为|為|は|은|는|[:：=](?:[ \t]{0,3}(?:\r?\n|\\n)[ \t>]{0,20}){0,2}"
     r"| — | lautet| ist| heißt| est| é| es)[ \t]{0,3}[\"'`「]?"
     r"(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[A-Za-z])([!-~]{6,200})"),
    ("password", "密码 密碼 口令 パスワード 비밀번호", 90,
     r"(?<![!-~])(?=[!-~]{0,60}\d)(?=[!-~]{0,60}[A-Za-z])([!-~]{6,60}+)[」』\s]{0,2}"
     r"(?:が|というのが|是|就是|为|為|가|이|（|\()[^\n!-~。、，]{0,16}(?:密码|密碼|口令|パスワード|비밀번호)"
     r"(?!管理|マネ|リセ|ポリ|再|重置|策略|变更|変更)"),
    ("login", "login Login creds Creds redentials", 0,
     r"(?:[Ll]ogin|[Cc]reds|redentials)(?: for [\w./-]{1,40})?:?\s{1,2}[\"'`]?[\w.@+-]{2,60}[\"'`]? ?"
     r"[/:,] ?[\"'`]?([^\s\"'`,]{6,200})"),
    ("login", "@", 120,
     r"(?<![\w:/.+-])(?!(?i:mailto|e?-?mail|b?cc|to|from|contact|acct|sip|xmpp|jid|author|by|user):)[\w.-]{1,40}"
     r":([^\s:/\"'<>()]{6,70})@\w[\w-]*(?:\.[\w-]+)+"),
    ("pin", "PIN", 0, r"PIN\b(?: code)?(?: (?:for|of|to) [\w ]{1,40}?)?(?:\s?[:=]\s?| is )(\d{4,10})\b"),
    ("otp-secret", "otp Otp OTP 2fa 2FA mfa MFA", 0,
     r"(?i:otp|[2m]fa)[_ ]?(?:seed|secret|key|code)[ :=]{1,4}[\"'`]?([A-Z2-7]{16,64}|[a-z2-7]{32})\b"),
    ("passphrase", "passphrase Passphrase PASSPHRASE", 0,
     r"(?i:passphrase)[\w ]{0,30}?\s?[:=][\s>]{0,6}[\"'`]?"
     r"((?:[A-Za-z0-9]{3,12}[ -]){2,11}[A-Za-z0-9]{3,12})\b"),
    ("seed-phrase", "mnemonic Mnemonic MNEMONIC seed Seed SEED recovery Recovery", 0,
     r"(?i:mnemonic|seed|recovery)[^\n]{0,40}?[\s\"'`:=]((?:[a-z]{3,8},?\s){11,23}[a-z]{3,8})\b"),
)
# fmt: on

CHECKED = frozenset(
    (
        "url-password",
        "url-token",
        "bearer-token",
        "basic-auth",
        "password",
        "login",
        "seed-phrase",
        "passphrase",
    )
)


@cache
def rows() -> tuple[tuple[str, tuple[str, ...], int, str], ...]:
    """The rows with their literals apart; blanks inside `FlyV1`-like literals do not occur."""
    return tuple((kind, tuple(literals.split()), back, pattern) for kind, literals, back, pattern in ROWS)


@cache
def compiled(pattern: str) -> Pattern[str]:
    """Compiled once, and only when a literal of its row was met."""
    return compile(pattern)
