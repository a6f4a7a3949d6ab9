package sanitize

import "strings"

// orders has three lists of words for each language that the patterns do not cover. A sentence with at least one
// word of each list tells the reader to ignore its instructions.
var orders = []struct{ verbs, which, what []string }{
	{
		[]string{"忽略", "无视", "無視", "忘记", "忘記", "忘掉", "忽視", "忽视"},
		[]string{"之前", "以前", "先前", "上述", "上面", "前面", "所有", "一切", "全部"},
		[]string{"指令", "指示", "提示", "命令", "规则", "規則", "说明", "說明"},
	},
	{[]string{"無視", "忘れ", "従わない"}, []string{"これまで", "以前", "前の", "上記", "すべて", "全て", "あらゆる"}, []string{"指示", "命令", "プロンプト", "ルール", "規則"}},
	{[]string{"무시", "잊어", "따르지"}, []string{"이전", "앞의", "위의", "모든", "기존"}, []string{"지시", "명령", "프롬프트", "규칙", "지침"}},
	{
		[]string{"игнорир", "забудь", "не обращай внимания", "отбрось"},
		[]string{"предыдущ", "прежн", "все", "выше", "ранее"},
		[]string{"инструкци", "указани", "правил", "команд", "промпт"},
	},
}

// findForeign finds sentences in the languages of orders that tell a model to ignore its instructions.
func findForeign(text string) (found []TextFinding) {
	rule, start := TextRule{ruleFamilies[0].id, ruleFamilies[0].reason}, 0
	end := func(at int) {
		if isOrder(strings.ToLower(text[start:at])) {
			found = append(found, newFinding(rule, start, at))
		}
		start = at
	}
	for i, r := range text {
		if strings.ContainsRune("。．.!?！？\n;；", r) {
			end(i)
		}
	}
	end(len(text))
	return found
}

func isOrder(sentence string) bool {
	for _, o := range orders {
		if containsAny(sentence, o.verbs) && containsAny(sentence, o.which) && containsAny(sentence, o.what) {
			return true
		}
	}
	return false
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
