package interop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.messaging.servicebus.administration.models.SharedAccessAuthorizationRule;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** What the SDK's descriptions of entities say, property by property: they cannot be compared themselves. */
final class Described {
    private Described() { }

    /** Every property that a description tells to its users, by its name. */
    static Map<String, Object> of(Object description) {
        Map<String, Object> told = new TreeMap<>();
        try {
            for (Method method : description.getClass().getDeclaredMethods()) {
                String name = method.getName().replaceFirst("^(get|is)(?=[A-Z])", "");
                if (Modifier.isPublic(method.getModifiers()) && method.getParameterCount() == 0
                        && !name.equals(method.getName())) {
                    told.put(name, comparable(method.invoke(description)));
                }
            }
        } catch (ReflectiveOperationException error) {
            throw new AssertionError(error);
        }
        return told;
    }

    /** Checks that what was asked for is what is there; {@code loose} is compared by the caller. */
    static void same(Object asked, Object there, Set<String> onlyAsked, Set<String> onlyThere, String... loose) {
        Map<String, Object> wanted = of(asked);
        Map<String, Object> found = of(there);
        assertEquals(onlyAsked, without(wanted.keySet(), found.keySet()));
        assertEquals(onlyThere, without(found.keySet(), wanted.keySet()));
        wanted.keySet().removeAll(onlyAsked);
        found.keySet().removeAll(onlyThere);
        List.of(loose).forEach(name -> {
            wanted.remove(name);
            found.remove(name);
        });
        assertEquals(wanted, found);
    }

    private static Set<String> without(Set<String> names, Set<String> others) {
        Set<String> rest = new TreeSet<>(names);
        rest.removeAll(others);
        return rest;
    }

    private static Object comparable(Object value) {
        if (value instanceof List<?> list) {
            return list.stream().map(Described::comparable).toList();
        }
        if (value instanceof SharedAccessAuthorizationRule rule) {
            return List.of(rule.getKeyName(), rule.getAccessRights().toString(), rule.getClaimType(),
                rule.getClaimValue(), rule.getPrimaryKey(), rule.getSecondaryKey());
        }
        return value;
    }
}
