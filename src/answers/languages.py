"""Words of answers in many languages: yes and no, "the answer is", "not", and modifiers of numbers.

A table with a row for each language; words are in lower case and NFC, ``|`` separates those of one sense.
"""

from __future__ import annotations

import re

# language: yes; no; "(the) answer"; words after it for "is" or "right"
_TABLE = """
en: yes|yeah|yep; no|nope; answer|ans|result|solution; is|are|was|would be|should be|must be|will be
de: ja; nein; antwort|lösung; ist|lautet|wäre
fr: oui; non; réponse|réponse correcte|réponse finale|réponse exacte; est|serait
es: sí|si; no; respuesta|respuesta correcta|respuesta final; es|sería
pt: sim; não|nao; resposta|resposta correta|resposta certa|resposta final; é|seria
it: sì|si; no; risposta|risposta corretta|risposta giusta|risposta finale; è|sarebbe
nl: ja; nee|neen; antwoord; is|luidt
sv: ja; nej; svar|svaret; är
da: ja; nej; svar|svaret; er
no: ja; nei; svar|svaret; er
is: já; nei; svar|svarið; er
fi: kyllä|joo; ei; vastaus; on
et: jah; ei; vastus; on
pl: tak; nie; odpowiedź|odpowiedzią; to|jest|brzmi
cs: ano; ne; odpověď|odpovědí; je|zní
sk: áno; nie; odpoveď|odpoveďou; je|znie
sl: da|ja; ne; odgovor; je
hr: da; ne; odgovor; je|glasi
sr: да; не; одговор; је|гласи
bg: да; не; отговор|отговорът|отговора; е
mk: да; не; одговор|одговорот; е
ro: da; nu; răspuns|răspunsul|răspunsul corect|răspunsul final; este|e
ca: sí; no; resposta|resposta correcta; és
hu: igen; nem; válasz; az|a|:
el: ναι; όχι|οχι; απάντηση|σωστή απάντηση; είναι
ru: да; нет; ответ|ответом; это|является|будет
uk: так; ні; відповідь|відповіддю; це|є|буде
lt: taip; ne; atsakymas|atsakymas:; yra
lv: jā; nē; atbilde; ir
tr: evet; hayır|hayir; cevap|cevabı|yanıt|yanıtı; ise
az: bəli|hə; xeyr|yox; cavab; isə
ar: نعم|أجل; لا|كلا; الإجابة|الاجابة|إجابة|الجواب|جواب|الإجابة الصحيحة|الإجابة النهائية|الجواب الصحيح; هي|هو
fa: بله|بلی|آری; خیر|نه; پاسخ|پاسخ صحیح|پاسخ درست|جواب; برابر|عبارت است از
ur: ہاں|جی ہاں; نہیں|جی نہیں; جواب|صحیح جواب; ہے
he: כן; לא; תשובה|התשובה|התשובה הנכונה|התשובה הסופית; היא|הינה
hi: हाँ|हां|जी हाँ; नहीं|जी नहीं; उत्तर|जवाब; है|होगा
mr: होय|हो; नाही; उत्तर; आहे
bn: হ্যাঁ|হ্যা|হাঁ; না; উত্তর|উত্তরটি|উত্তর হল|উত্তর হলো; হল|হলো|হচ্ছে
ta: ஆம்|ஆமாம்; இல்லை; பதில்|விடை; என்பது
te: అవును; కాదు|లేదు; సమాధానం|జవాబు; అనేది
th: ใช่|ใช่ค่ะ|ใช่ครับ|มี; ไม่ใช่|ไม่|ไม่มี; คำตอบ|คำตอบที่ถูกต้อง; คือ|ได้แก่
vi: có|đúng|vâng; không|sai; câu trả lời|đáp án|đáp án đúng|câu trả lời đúng|câu trả lời cuối cùng|trả lời; là
id: ya|iya|benar; tidak|bukan|salah; jawaban|jawabannya|jawaban yang benar|jawaban akhir; adalah|ialah
ms: ya; tidak|bukan; jawapan|jawapannya; ialah|adalah
fil: oo|opo; hindi; sagot|tamang sagot; ay
sw: ndiyo|ndio; hapana; jibu|jibu sahihi; ni
ja: はい|ええ|そうです; いいえ|いえ|違います; 答え|正解|解答|回答|最終回答|最終的な答え; は|が
ko: 네|예|네 맞습니다; 아니요|아니오|아뇨|아닙니다; 정답|답|답변|대답|최종 답; 은|는|이|입니다
zh: 是|是的|对|對|对的|有|正确; 否|不是|不|不对|不對|没有|沒有|不正确; 答案|回答|答; 应该是|應該是|应为|是|为|為|就是
zh: 是呀; 不是的; 最终答案; 就应该是
"""

_ROWS = [line.partition(":")[2].split(";") for line in _TABLE.strip().splitlines()]


def _cell(text: str) -> list[str]:
    return [part.strip() for part in text.split("|") if part.strip()]


YES = frozenset(word for row in _ROWS for word in _cell(row[0]))
NO = frozenset(word for row in _ROWS for word in _cell(row[1]))
_WIDE = re.compile("[\u0e00-\u0e7f\u2e80-\U0003ffff]")  # scripts without blanks between words
_MARKUP = r"[\s*_`]*"


def _one_of(words: list[str]) -> str:
    """A pattern of words, the longest first; each stands alone, in scripts that have blanks."""
    alone = (re.escape(word).replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True))
    return "|".join(word if _WIDE.search(word) else rf"(?<!\w){word}(?!\w)" for word in alone)


def _statement(row: list[str]) -> str:
    """The pattern of "the answer is" and "answer:" in a language."""
    nouns, verbs = _cell(row[2]), _cell(row[3])
    says = rf"\s*(?:{_one_of(verbs)}){_MARKUP}[:=]?|[\s*_`\"']*[:=]"
    says += "|" if _WIDE.search(nouns[0]) else "|\\s*[—–-](?=\\s)"
    about = r"(?:\s+(?:to|for)\s[^.:\n]{1,80}?)?" if "answer" in nouns else ""
    return rf"(?:{_one_of(nouns)}){about}[*_`\"']*+(?:{says})"  # what follows can begin with more of the same marks


POLITE_IS = "です|でした|입니다|이에요|예요"  # that no word ends with
IS_AFTER = rf"{POLITE_IS}|だ|이다"
NOUNS = "|".join(re.escape(word) for row in _ROWS for word in _cell(row[2]))
# Some languages put the verb last, or have none: "उत्तर B है", "Cevap B", "A válasz B".
_VERB_LAST = "cevap yanıt cavab válasz پاسخ جواب ответ відповідь उत्तर जवाब উত্তর பதில் விடை".split()
VERB_LAST = _one_of(_VERB_LAST)
ANSWER_IS = (
    rf"(?:{'|'.join(_statement(row) for row in _ROWS)}"
    rf"|(?:{VERB_LAST})(?=\s+[\"'(*]*(?-i:[A-Z])(?!\w))){_MARKUP}"
)

OR = _one_of(
    """
    or and ou et oder und o u y e of en eller och og tai ja või lub albo czy nebo anebo či alebo ali
    ili или и або чи vagy sau ή veya mi أو یا או या বা அல்லது లేదా หรือ hoặc hay atau au または か 还是 還是
    或 或者 또는 아니면
    """.split()
)
NOT = frozenset(
    """
    nicht kein keine pas jamais nunca non não nao niet geen inte ikke ekki ei nie ne není nije nu
    nem не нет ні не δεν όχι değil ليس ليست לא אינה नहीं না இல்லை కాదు không bukan tidak hindi
    bukanlah
    """.split()
)
EXCEPT = frozenset(
    """
    menos salvo excepto exceto eccetto tranne außer ausser sauf excepté behalve utom undtagen unntatt paitsi
    oprócz poza kromě okrem osim razen кроме окрім крім освен осим kivéve εκτός hariç dışında إلا ماعدا
    חוץ مگر सिवाय ছাড়া kecuali selain trừ ngoại maliban
    """.split()
)
WRONG = frozenset(
    """
    falsch unzutreffend fausse faux incorrecte incorrecta incorrecto falsa falso errata errato
    sbagliata sbagliato errada errado incorreta fout onjuist fel forkert feil galt väärin vale
    błędna niepoprawna špatně nesprávná nesprávne netočan greșit incorect helytelen rossz λάθος
    неверный неверно неправильный неправильно невірно неправильна yanlış خاطئة خطأ שגויה गलत ভুল
    salah sai
    """.split()
)
NOT_WORDS, WRONG_WORDS = (_one_of(sorted(words)) for words in (NOT | EXCEPT, WRONG))
FOREIGN_NOUNS = "|".join(re.escape(word) for row in _ROWS[1:] for word in _cell(row[2]))
NO_WORDS = _one_of(sorted(NO))
_VERBS = sorted({word for row in _ROWS for word in _cell(row[3])})
ANY_IS = _one_of(_VERBS)
IS_WORDS = _one_of([word for word in _VERBS if len(word) > 1 or _WIDE.match(word)])
COMPARISONS = frozenset(
    """
    als oder weniger mehr mindestens höchstens über unter beinahe rund ou moins que presque menos
    más mas que o u mínimo máximo casi mais menor maior quase más meno più oppure quasi minder meer
    minstens hoogstens bijna dan eller mindre mer färre minst högst nästan mindst højst næsten
    vähemmän enemmän yli lub mniej więcej niż ponad prawie nebo méně více než téměř sau mai puțin
    mult decât aproape vagy kevesebb több legalább или менее более меньше больше чем почти або менше
    більше ніж майже veya az fazla daha neredeyse ή λιγότερο περισσότερο από kurang lebih dari
    hampir atau ít hơn nhiều gần hoặc أقل أكثر من أو פחות יותר או कम अधिक ज्यादा या কম বেশি
    """.split()
)
SCALES = frozenset(
    """
    hundert tausend million millionen mio milliarde milliarden prozent dutzend cent cents mille
    millions milliard milliards pour douzaine ciento cien mil millón millones millardo docena por
    mille milioni milione miliardi miliardo mila percento dozzina milhão milhões bilhão bilhões
    cento dúzia honderd duizend miljoen miljard procent dozijn hundra tusen miljoner miljarder
    hundrede tusinde millioner milliarder prosent prosenttia tuhat tuhatta miljoona miljoonaa sto
    tysiąc tysiące tysięcy milion miliony milionów miliard miliarda miliardów procenta procentów
    tuzin tisíc milionu procenta mii milioane sută száz ezer millió milliárd százalék тысяча тысячи
    тысяч миллион миллиона миллионов миллиард миллиарда миллиардов процент процента процентов тис
    млн млрд тыс тисяч мільйон мільйонів відсотків yüz bin milyon milyar yüzde ألف آلاف مليون ملايين
    مليار بالمائة हज़ार हजार लाख करोड़ प्रतिशत হাজার লাখ কোটি ribu juta miliar persen nghìn ngàn
    triệu tỷ phần χιλιάδες εκατομμύρια δισεκατομμύρια אלף אלפים מיליון אחוז
    """.split()
)

CORRECT = frozenset(
    """
    correct korrekt richtig correcte correcto correcta correto correta corretto corretta верно правильно
    正确 正確 对 正确的 对的
    正解 정답 맞음
    """.split()
)
INCORRECT = frozenset(
    """
    incorrect inkorrekt falsch incorrecte incorrecto incorrecta incorreto incorreta scorretto
    scorretta errato errata неверно неправильно 错误 錯誤 不正确 不正確 错 错误的 不正确的 不正解 誤り 오답 틀림
    """.split()
)
CORRECT_WORDS = _one_of(sorted(CORRECT))
WIDE_CORRECT_WORDS = "|".join(
    sorted((word for word in CORRECT | {"正しい", "답", "答え", "答案"} if _WIDE.match(word)), key=len, reverse=True)
)
